-- A name in HAVING that both the select list and FROM have: a key is meant, else what the select list shows.
CREATE TABLE t (store INT, qty INT, note STRING) USING iceberg;
INSERT INTO t VALUES
(1, 5, 'a'),
(1, -100, 'A'),
(2, 7, 'b'),
(3, 1, NULL);
CREATE MATERIALIZED VIEW v1 WITH NO DATA AS
SELECT store, sum(qty) AS qty FROM t GROUP BY store HAVING qty > 0;
CREATE MATERIALIZED VIEW v2 WITH NO DATA AS
SELECT store, sum(qty) AS qty FROM t GROUP BY store HAVING abs(qty) > 1 AND max(qty) < 7;
CREATE MATERIALIZED VIEW v3 WITH NO DATA AS
SELECT -store AS store, sum(qty) AS s FROM t GROUP BY store HAVING store > 1;
CREATE MATERIALIZED VIEW v4 WITH NO DATA AS
SELECT upper(note) AS note, count(*) AS n FROM t GROUP BY note HAVING note <> 'A';
CREATE MATERIALIZED VIEW v5 WITH NO DATA AS
SELECT store, -store AS qty, max(note) AS note FROM t GROUP BY store HAVING qty > -3 AND note IS NOT NULL;
CREATE MATERIALIZED VIEW v6 WITH NO DATA AS
SELECT store, rank() OVER (ORDER BY sum(qty)) AS r, sum(qty) AS qty FROM t GROUP BY store HAVING qty > -200;
--! refresh
INSERT INTO t VALUES
(3, 9, 'c'),
(4, 7, 'A');
--! refresh
DELETE FROM t WHERE qty = 7;
--! refresh
