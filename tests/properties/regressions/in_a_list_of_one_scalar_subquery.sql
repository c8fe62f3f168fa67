-- IN ((SELECT …)) is a list of one scalar subquery for Spark: of no rows NULL, so that NOT IN is unknown.
CREATE TABLE t (id INT) USING iceberg;
CREATE TABLE u (id INT) USING iceberg;
INSERT INTO t VALUES (1), (2);
INSERT INTO u VALUES (1);
CREATE MATERIALIZED VIEW v1 WITH NO DATA AS
SELECT id FROM t WHERE id NOT IN ((SELECT id FROM u));
CREATE MATERIALIZED VIEW v2 WITH NO DATA AS
SELECT id FROM t WHERE id IN ((SELECT id FROM u) UNION SELECT 2);
--! may be full: v1
--! refresh
DELETE FROM u;
--! refresh
INSERT INTO t VALUES (3);
--! refresh
