-- GROUPING_ID() counts the keys in the order of the list before GROUPING SETS, then as they are written.
CREATE TABLE t (a INT, b INT, c INT) USING iceberg;
INSERT INTO t VALUES
(1, 1, 1),
(1, 2, 3),
(2, 2, NULL);
CREATE MATERIALIZED VIEW v1 WITH NO DATA AS
SELECT a, b, grouping_id() AS g, count(*) AS n FROM t GROUP BY a, b GROUPING SETS ((b), (a));
CREATE MATERIALIZED VIEW v2 WITH NO DATA AS
SELECT a, b, c, grouping_id() AS g, count(*) AS n FROM t GROUP BY GROUPING SETS ((a), (b)), c;
CREATE MATERIALIZED VIEW v3 WITH NO DATA AS
SELECT a, b, grouping_id() AS g, count(*) AS n FROM t GROUP BY a, b, c GROUPING SETS ((a), (b));
CREATE MATERIALIZED VIEW v4 WITH NO DATA AS
SELECT b, a, grouping_id() AS g, count(*) AS n FROM t GROUP BY CUBE (b, a);
--! refresh
INSERT INTO t VALUES
(2, 3, 3);
DELETE FROM t WHERE c = 1;
--! refresh
