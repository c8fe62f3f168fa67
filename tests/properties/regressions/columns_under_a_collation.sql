-- Iceberg stores no collation: the view's column had lost it, verify failed, and a view over it told 'A' from 'a'.
CREATE TABLE t (id INT, name STRING) USING iceberg;
INSERT INTO t VALUES
(1, 'A'),
(2, 'a'),
(3, 'b');
CREATE MATERIALIZED VIEW v1 WITH NO DATA AS
SELECT name COLLATE UTF8_LCASE AS nm, id FROM t;
CREATE MATERIALIZED VIEW v2 WITH NO DATA AS
SELECT count(*) AS n, count(DISTINCT nm) AS names, max(nm = 'B') AS b FROM v1;
CREATE MATERIALIZED VIEW v3 WITH NO DATA AS
SELECT name COLLATE UTF8_LCASE AS nm, count(*) AS n FROM t GROUP BY 1;
CREATE MATERIALIZED VIEW v4 WITH NO DATA AS
SELECT id, array(name COLLATE UTF8_LCASE, 'a') AS names FROM t;
--! may be full: v1 v2 v3 v4
--! refresh
INSERT INTO t VALUES
(4, 'B');
--! refresh
