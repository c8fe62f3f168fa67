-- # LEFT: what concerns the right side alone narrows it
-- columns: item, city
SELECT p.item, s.city FROM pos p LEFT JOIN stores s ON p.store = s.store AND s.region = 'R'
-- becomes
SELECT r1.item, r2.city
FROM lake.shop.pos /* new */ AS r1
LEFT JOIN (
  SELECT store AS store_2, city, region
  FROM lake.shop.stores /* new */
  WHERE region = 'R'
) AS r2 ON r1.store = r2.store_2

-- # RIGHT is LEFT the other way round
-- columns: item, city
SELECT p.item, s.city FROM pos p RIGHT JOIN stores s ON p.store = s.store AND p.qty > 1
-- becomes
SELECT r2.item, r1.city
FROM lake.shop.stores /* new */ AS r1
LEFT JOIN (
  SELECT store, item, qty
  FROM lake.shop.pos /* new */
  WHERE qty > 1
) AS r2 ON r2.store = r1.store

-- # FULL under USING: the key is whichever is there
-- columns: store, city, qty
SELECT store, city, qty FROM pos FULL JOIN stores USING (store)
-- becomes
SELECT coalesce(r1.store, r2.store) AS store, r2.city, r1.qty
FROM lake.shop.pos /* new */ AS r1
FULL JOIN lake.shop.stores /* new */ AS r2 ON r1.store = r2.store

-- # A chain, over an inner join
-- columns: qty, city, name
SELECT p.qty, s.city, i.name FROM pos p JOIN stores s ON p.store = s.store LEFT JOIN items i ON i.item = p.item AND i.qty < p.qty
-- becomes
SELECT r1.qty, r1.city, r2.name
FROM (
  SELECT r1.store, r1.item, r1.qty, r2.store AS store_2, r2.city
  FROM lake.shop.pos /* new */ AS r1
  JOIN lake.shop.stores /* new */ AS r2 ON r1.store = r2.store
) AS r1
LEFT JOIN lake.shop.items /* new */ AS r2 ON r2.item = r1.item AND r2.qty < r1.qty

-- # A condition that is no equality, and none
-- columns: qty, city
SELECT p.qty, s.city FROM pos p LEFT JOIN stores s ON p.store < s.store
-- becomes
SELECT r1.qty, r2.city
FROM lake.shop.pos /* new */ AS r1
LEFT JOIN lake.shop.stores /* new */ AS r2 ON r1.store < r2.store
