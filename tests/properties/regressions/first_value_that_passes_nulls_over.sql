-- first_value(x, true) is first_value(x) IGNORE NULLS. Rows that tie were told apart, which cut its frame short: the
-- NULL came first and its frame held nothing else. Nothing may raise here.
CREATE TABLE t (k INT, d INT, x INT) USING iceberg;
INSERT INTO t VALUES (1, 1, NULL), (1, 1, 5);
CREATE MATERIALIZED VIEW v1 WITH NO DATA AS
SELECT k, d, x, CASE WHEN f IS NULL THEN raise_error('the frame was cut short') ELSE f END AS f
FROM (SELECT k, d, x, first_value(x, true) OVER (PARTITION BY k ORDER BY d) AS f FROM t);
CREATE MATERIALIZED VIEW v2 WITH NO DATA AS
SELECT k, CASE WHEN f IS NULL THEN raise_error('the frame was cut short') ELSE f END AS f
FROM (SELECT k, any_value(x, true) OVER (PARTITION BY k ORDER BY d) AS f FROM t);
--! may be full: v1 v2
INSERT INTO t VALUES (2, 1, NULL), (2, 1, 7);
--! refresh
