-- # UNION ALL takes the first one's names
-- columns: store
SELECT store FROM pos UNION ALL SELECT item FROM items UNION ALL SELECT store FROM stores
-- becomes
SELECT store
FROM lake.shop.pos /* new */
UNION ALL
SELECT item AS store
FROM lake.shop.items /* new */
UNION ALL
SELECT store
FROM lake.shop.stores /* new */

-- # UNION removes duplicates
-- columns: store
SELECT store FROM pos UNION SELECT item FROM items
-- becomes
SELECT DISTINCT store
FROM (
  SELECT store
  FROM lake.shop.pos /* new */
  UNION ALL
  SELECT item AS store
  FROM lake.shop.items /* new */
)

-- # Inside FROM, with a filter above
-- columns: n
SELECT n FROM (SELECT name AS n FROM items UNION ALL SELECT city FROM stores) WHERE n > 'k'
-- becomes
SELECT n
FROM (
  SELECT name AS n
  FROM lake.shop.items /* new */
  UNION ALL
  SELECT city AS n
  FROM lake.shop.stores /* new */
)
WHERE n > 'k'
