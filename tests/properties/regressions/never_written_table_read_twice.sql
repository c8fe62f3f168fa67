-- A table that was never written is read by a recomputed view and, again, by the view that reads that one.
-- Spark 4.1 could not analyse the second query: a staged result and a table that both read without a version,
-- each in a session of its own.
CREATE TABLE t1 (i0 int, s1 string) USING iceberg;
CREATE TABLE t2 (i0 int, d2 decimal(8,2)) USING iceberg;
CREATE MATERIALIZED VIEW v1 WITH NO DATA AS
SELECT a.i0 AS k2, count(b.i0) AS k3 FROM t1 a LEFT JOIN t1 b ON a.i0 = b.i0 GROUP BY a.i0;
CREATE MATERIALIZED VIEW v2 WITH NO DATA AS
SELECT r2.i0 AS c0
FROM t2 AS r2 CROSS JOIN v1 AS r4
UNION ALL
SELECT r5.i0 AS c0
FROM t1 AS r5;
--! may be full: v1
INSERT INTO t1 VALUES
(1, 'a'),
(1, NULL);
--! refresh
INSERT INTO t2 VALUES
(7, 1.50);
--! refresh
