-- A column list was refused where two columns of the query have one name, though that is what it is for.
CREATE TABLE stock (item int, month int, qty int) USING iceberg;
INSERT INTO stock VALUES (1, 1, 5), (1, 2, 7), (2, 1, NULL), (2, 2, 4);
CREATE MATERIALIZED VIEW months (item, qty, next) WITH NO DATA AS
SELECT a.item, a.qty, b.qty FROM stock a JOIN stock b ON a.item = b.item AND a.month + 1 = b.month;
CREATE MATERIALIZED VIEW totals (item, qty, n) WITH NO DATA AS
SELECT item, sum(qty), count(qty) FROM stock GROUP BY item;
CREATE MATERIALIZED VIEW numbered (`a b`, place) WITH NO DATA AS
SELECT qty, rank() OVER (PARTITION BY item ORDER BY month) FROM stock;
INSERT INTO stock VALUES (2, 3, 9), (1, 2, 1);
--! refresh
UPDATE stock SET qty = 8 WHERE item = 2;
--! refresh
