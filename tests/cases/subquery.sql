-- # EXISTS: its conditions tie it to the rows around it
-- columns: qty
SELECT qty FROM pos p WHERE p.qty > 1 AND EXISTS (SELECT 1 FROM items i WHERE i.item = p.item AND i.qty > p.qty AND i.name <> 'x')
-- becomes
SELECT r1.qty
FROM (
  SELECT item, qty
  FROM lake.shop.pos /* new */
  WHERE qty > 1
) AS r1
LEFT SEMI JOIN (
  SELECT item AS item_2, name, qty AS qty_2
  FROM lake.shop.items /* new */
  WHERE name <> 'x'
) AS r2 ON r2.item_2 = r1.item AND r2.qty_2 > r1.qty

-- # NOT EXISTS
-- columns: qty
SELECT qty FROM pos p WHERE NOT EXISTS (SELECT * FROM stores s WHERE s.store = p.store)
-- becomes
SELECT r1.qty
FROM lake.shop.pos /* new */ AS r1
LEFT ANTI JOIN lake.shop.stores /* new */ AS r2 ON r2.store = r1.store

-- # IN
-- columns: qty
SELECT qty FROM pos WHERE store IN (SELECT store FROM stores WHERE region = 'R')
-- becomes
SELECT r1.qty
FROM lake.shop.pos /* new */ AS r1
LEFT SEMI JOIN (
  SELECT store AS store_2, region
  FROM lake.shop.stores /* new */
  WHERE region = 'R'
) AS r2 ON r1.store = r2.store_2

-- # NOT IN of several columns: each may be unknown
-- columns: qty
SELECT qty FROM pos WHERE (store, item) NOT IN (SELECT store, region FROM stores)
-- becomes
SELECT r1.qty
FROM lake.shop.pos /* new */ AS r1
LEFT ANTI JOIN lake.shop.stores /* new */ AS r2 ON coalesce(r1.store = r2.store, TRUE) AND coalesce(r1.item = r2.region, TRUE)

-- # NOT IN: unknown is not true
-- columns: qty
SELECT qty FROM pos WHERE store NOT IN (SELECT store FROM stores)
-- becomes
SELECT r1.qty
FROM (
  SELECT r1.store, r1.qty
  FROM (
    SELECT r1.store, r1.qty
    FROM lake.shop.pos /* new */ AS r1
    LEFT ANTI JOIN lake.shop.stores /* new */ AS r2 ON r1.store = r2.store
  ) AS r1
  LEFT ANTI JOIN (
    SELECT store AS store_2
    FROM lake.shop.stores /* new */
    WHERE store IS NULL
  ) AS r2 ON true
) AS r1
LEFT ANTI JOIN (
  SELECT `rows`
  FROM (
    SELECT count(*) AS `rows`
    FROM lake.shop.stores /* new */
  )
  WHERE `rows` > 0
) AS r2 ON r1.store IS NULL

-- # EXISTS beside OR: a mark
-- columns: qty
SELECT qty FROM pos p WHERE qty > 1 OR EXISTS (SELECT 1 FROM stores s WHERE s.store = p.store)
-- becomes
SELECT qty
FROM (
  SELECT r1.store, r1.qty, true AS `found`
  FROM lake.shop.pos /* new */ AS r1
  LEFT SEMI JOIN lake.shop.stores /* new */ AS r2 ON r2.store = r1.store
  UNION ALL
  SELECT r1.store, r1.qty, false AS `found`
  FROM lake.shop.pos /* new */ AS r1
  LEFT ANTI JOIN lake.shop.stores /* new */ AS r2 ON r2.store = r1.store
)
WHERE qty > 1 OR `found`

-- # A mark under a condition that is no equality
-- columns: qty, e
SELECT qty, EXISTS (SELECT 1 FROM items i WHERE i.qty < p.qty) AS e FROM pos p
-- becomes
SELECT qty, `found` AS e
FROM (
  SELECT r1.qty, true AS `found`
  FROM lake.shop.pos /* new */ AS r1
  LEFT SEMI JOIN lake.shop.items /* new */ AS r2 ON r2.qty < r1.qty
  UNION ALL
  SELECT r1.qty, false AS `found`
  FROM lake.shop.pos /* new */ AS r1
  LEFT ANTI JOIN lake.shop.items /* new */ AS r2 ON r2.qty < r1.qty
)

-- # One value for all rows
-- columns: qty
SELECT qty FROM pos WHERE qty > (SELECT avg(qty) FROM items)
-- becomes
SELECT r1.qty
FROM lake.shop.pos /* new */ AS r1
JOIN (
  SELECT avg(qty) AS avg_qty_2
  FROM lake.shop.items /* new */
) AS r2 ON r1.qty > r2.avg_qty_2

-- # A value for each key: of nothing, a count is 0
-- columns: store, n
SELECT s.store, (SELECT count(*) FROM pos p WHERE p.store = s.store) AS n FROM stores s
-- becomes
SELECT r1.store, ((coalesce(r2.count, 0))) AS n
FROM lake.shop.stores /* new */ AS r1
LEFT JOIN (
  SELECT store AS store_2, count(*) AS count
  FROM lake.shop.pos /* new */
  GROUP BY store
) AS r2 ON r1.store = r2.store_2

-- # A value for each combination of outer columns
-- columns: store, n
SELECT s.store, (SELECT max(qty) FROM pos p WHERE p.store < s.store) AS n FROM stores s
-- becomes
SELECT r1.store, r2.max_qty AS n
FROM lake.shop.stores /* new */ AS r1
LEFT JOIN (
  SELECT r1.store_3, max(r2.qty) AS max_qty
  FROM (
    SELECT DISTINCT store AS store_3
    FROM lake.shop.stores /* new */
  ) AS r1
  JOIN lake.shop.pos /* new */ AS r2 ON r2.store < r1.store_3
  GROUP BY r1.store_3
) AS r2 ON r1.store <=> r2.store_3

-- # A value of the one row that has the key
-- columns: qty, c
SELECT p.qty, (SELECT city FROM stores s WHERE s.store = p.store) AS c FROM pos p
-- becomes
SELECT
  r1.qty,
  (CASE WHEN r2.`rows` > 1 THEN raise_error('a subquery that stands for one value gave several rows') ELSE r2.value_2 END) AS c
FROM lake.shop.pos /* new */ AS r1
LEFT JOIN (
  SELECT store AS key, max(city) AS value_2, count(*) AS `rows`
  FROM lake.shop.stores /* new */
  GROUP BY store
) AS r2 ON r1.store = r2.key

-- # In HAVING
-- columns: store, n
SELECT store, sum(qty) AS n FROM pos GROUP BY store HAVING sum(qty) > (SELECT avg(qty) FROM items)
-- becomes
SELECT r1.store, r1.n
FROM (
  SELECT store, sum(qty) AS n
  FROM lake.shop.pos /* new */
  GROUP BY store
) AS r1
CROSS JOIN (
  SELECT avg(qty) AS avg_qty_2
  FROM lake.shop.items /* new */
) AS r2
WHERE r1.n > r2.avg_qty_2
