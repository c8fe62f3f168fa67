-- LIKE ANY ('a%', 'b%') was regenerated as LIKE ANY struct('a%', 'b%'), which is no SQL: always recomputed.
CREATE TABLE t (id INT, name STRING, pattern STRING) USING iceberg;
INSERT INTO t VALUES
(1, 'apple', 'b%'),
(2, 'bean', 'b%'),
(3, NULL, 'c%');
CREATE MATERIALIZED VIEW v1 WITH NO DATA AS
SELECT id FROM t WHERE name LIKE ANY ('a%', pattern);
CREATE MATERIALIZED VIEW v2 WITH NO DATA AS
SELECT id, name NOT ILIKE ALL ('A%', '%N') AS x FROM t;
--! refresh
INSERT INTO t VALUES
(4, 'cake', 'c%'),
(5, 'Avocado', NULL);
DELETE FROM t WHERE id = 1;
--! refresh
