-- The staged rows of a recomputed view had the names of its query, not those of its column list.
CREATE TABLE t1 (i0 int, s1 string) USING iceberg;
INSERT INTO t1 VALUES
(1, 'a'),
(2, NULL);
CREATE MATERIALIZED VIEW v1 (`k2`, `k3`) WITH NO DATA AS
SELECT a.i0, count(b.i0) AS n FROM t1 a LEFT JOIN t1 b ON a.i0 = b.i0 GROUP BY a.i0;
CREATE MATERIALIZED VIEW v2 WITH NO DATA AS
SELECT k3, sum(k2) AS total FROM v1 GROUP BY k3;
--! may be full: v1
INSERT INTO t1 VALUES
(2, 'b');
--! refresh
