-- m.a and m.A are two keys of a map, and `a b` and `ab` two fields of a struct.
CREATE TABLE r (k INT, s STRING, f STRUCT<`a b`: INT, ab: INT>) USING iceberg;
INSERT INTO r VALUES
(1, 'a:1,A:10', named_struct('a b', 1, 'ab', 10));
CREATE MATERIALIZED VIEW v1 WITH NO DATA AS
WITH t AS (SELECT k, str_to_map(s) AS m FROM r) SELECT k, sum(int(m.a)) AS x, sum(int(m.A)) AS y FROM t GROUP BY k;
CREATE MATERIALIZED VIEW v2 WITH NO DATA AS
SELECT sum(f.`a b`) AS x, sum(f.`ab`) AS y FROM r;
--! may be full: v1 v2
--! refresh
INSERT INTO r VALUES
(1, 'a:2,A:20', named_struct('a b', 2, 'ab', 20));
--! refresh
