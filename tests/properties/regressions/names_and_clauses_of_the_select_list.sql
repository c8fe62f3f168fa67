-- The FROM of IS DISTINCT FROM in the select list was taken for that of the SELECT by QUALIFY; and of two casts Spark
-- makes a name of their words, where we said the column's.
CREATE TABLE t (k INT, a INT, b INT, at TIMESTAMP) USING iceberg;
INSERT INTO t VALUES (1, 1, NULL, TIMESTAMP'2024-03-01 10:00:00'), (1, 2, 2, NULL);
CREATE MATERIALIZED VIEW v1 WITH NO DATA AS
SELECT k, a IS DISTINCT FROM b AS changed FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY a DESC) = 1;
CREATE MATERIALIZED VIEW v2 (k, day) WITH NO DATA AS
SELECT k, CAST(CAST(at AS DATE) AS STRING) FROM t;
CREATE MATERIALIZED VIEW v3 (k, day) WITH NO DATA AS
SELECT k, at::date::string FROM t;
INSERT INTO t VALUES (1, 3, NULL, TIMESTAMP'2024-03-02 10:00:00');
--! refresh
