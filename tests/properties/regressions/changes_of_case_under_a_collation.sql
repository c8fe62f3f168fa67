-- 'A' that became 'a' was no change, where strings were compared without regard to case.
CREATE TABLE t (k INT, id INT, name STRING) USING iceberg;
INSERT INTO t VALUES
(1, 1, 'A'),
(1, 2, 'b');
CREATE MATERIALIZED VIEW v1 WITH NO DATA AS
SELECT k, id, ascii(n) AS code, row_number() OVER (PARTITION BY k ORDER BY id) AS rn
FROM (SELECT k, id, collate(name, 'UTF8_LCASE') AS n FROM t) q;
--! may be full: v1
--! refresh
UPDATE t SET name = 'a' WHERE id = 1;
--! refresh
