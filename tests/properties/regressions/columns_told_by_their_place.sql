-- Of a table the text of a query named only the columns that are read. Where columns are told by their place, a list
-- behind it had one name too many, or (v4) a column took the place of another in silence.
CREATE TABLE t (p INT, b INT, k INT) USING iceberg;
CREATE TABLE u (b INT, y INT, z INT) USING iceberg;
INSERT INTO t VALUES (1, 10, 100), (2, NULL, 200);
INSERT INTO u VALUES (70, 80, 90);
CREATE MATERIALIZED VIEW v1 WITH NO DATA AS
SELECT one FROM t AS x(one, two, three);
CREATE MATERIALIZED VIEW v2 WITH NO DATA AS
WITH x(one, two, three) AS (SELECT * FROM t) SELECT one, count(*) AS n FROM x GROUP BY one;
CREATE MATERIALIZED VIEW v3 WITH NO DATA AS
SELECT p FROM (SELECT * FROM t UNION ALL TABLE u);
CREATE MATERIALIZED VIEW v4 WITH NO DATA AS
SELECT b AS k FROM (SELECT * FROM t UNION ALL SELECT * FROM u);
--! may be full: v3
--! refresh
INSERT INTO u VALUES (71, 81, 91);
INSERT INTO t VALUES (3, 30, 300);
--! refresh
DELETE FROM u WHERE b = 70;
--! refresh
