-- sqlglot takes array(…)[i] for [i] and forgets what is in the parentheses: a subquery or a window function in there
-- was taken for words of one row. v1 was "unchanged" whatever became of pos, v2 counted the changed rows alone.
CREATE TABLE stores (store INT, city STRING) USING iceberg;
CREATE TABLE pos (store INT, qty INT) USING iceberg;
INSERT INTO stores VALUES
(1, 'Rome'),
(2, 'Oslo'),
(3, 'Bern');
INSERT INTO pos VALUES
(1, 5),
(2, 7);
CREATE MATERIALIZED VIEW v1 WITH NO DATA AS
SELECT city, array((SELECT max(qty) FROM pos), 0)[0] AS best FROM stores;
CREATE MATERIALIZED VIEW v2 WITH NO DATA AS
SELECT city, array(count(*) OVER (), 0)[0] AS n FROM stores;
CREATE MATERIALIZED VIEW v3 WITH NO DATA AS
SELECT store, array(qty, store)[0] AS q FROM pos;
CREATE MATERIALIZED VIEW v4 WITH NO DATA AS
SELECT array(count(*), 0)[0] AS n FROM pos;
--! refresh
INSERT INTO pos VALUES
(3, 9);
--! refresh
INSERT INTO stores VALUES
(4, 'Kyiv');
--! refresh
DELETE FROM stores WHERE store = 1;
--! refresh
