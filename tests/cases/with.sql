-- # WITH hides a table, but not from itself
-- columns: store
WITH pos AS (SELECT store FROM pos WHERE qty > 1), s AS (SELECT * FROM pos) SELECT store FROM s
-- becomes
SELECT store
FROM lake.shop.pos /* new */
WHERE qty > 1

-- # Used twice, with its own column names
-- columns: x, y
WITH c(x, y) AS (SELECT store, qty FROM pos) SELECT a.x, b.y FROM c a JOIN c b ON a.x = b.y
-- becomes
SELECT r1.store AS x, r2.qty AS y
FROM lake.shop.pos /* new */ AS r1
JOIN lake.shop.pos /* new */ AS r2 ON r1.store = r2.qty

-- # Inside a subquery
-- columns: n
SELECT count(*) AS n FROM (WITH c AS (SELECT DISTINCT city FROM stores) SELECT * FROM c)
-- becomes
SELECT count(*) AS n
FROM (
  SELECT DISTINCT city
  FROM lake.shop.stores /* new */
)
