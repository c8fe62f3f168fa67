-- # Comma, JOIN, CROSS JOIN and WHERE are one join
-- columns: total, city
SELECT p.qty * i.qty AS total, s.city FROM pos p, stores s JOIN items AS i ON i.item = p.item WHERE p.store = s.store AND (s.region = 'R' OR s.city = 'B')
-- becomes
SELECT r1.qty * r3.qty AS total, r2.city
FROM lake.shop.pos /* new */ AS r1
JOIN lake.shop.stores /* new */ AS r2 ON r1.store = r2.store AND ((r2.region = 'R' OR r2.city = 'B'))
JOIN lake.shop.items /* new */ AS r3 ON r3.item = r1.item

-- # A self join
-- columns: s1, s2
SELECT a.store AS s1, b.store AS s2 FROM pos a JOIN pos b ON a.item = b.item AND a.store < b.store
-- becomes
SELECT r1.store AS s1, r2.store AS s2
FROM lake.shop.pos /* new */ AS r1
JOIN lake.shop.pos /* new */ AS r2 ON r1.item = r2.item AND r1.store < r2.store

-- # USING: the key is one column, and each side's is still there
-- columns: store, city, other
SELECT store, city, stores.store AS other FROM pos JOIN stores USING (store)
-- becomes
SELECT r1.store, r2.city, r2.store AS other
FROM lake.shop.pos /* new */ AS r1
JOIN lake.shop.stores /* new */ AS r2 ON r1.store = r2.store

-- # NATURAL
-- columns: item, name
SELECT item, name FROM pos NATURAL JOIN items
-- becomes
SELECT r1.item, r2.name
FROM lake.shop.pos /* new */ AS r1
JOIN lake.shop.items /* new */ AS r2 ON r1.item = r2.item AND r1.qty = r2.qty

-- # Joins in parentheses, and a join in a subquery, are flattened
-- columns: city
SELECT z.city FROM (SELECT p.item AS i, s.city FROM (pos p JOIN stores s ON p.store = s.store) WHERE qty > 1) z JOIN items ON items.item = z.i
-- becomes
SELECT r2.city
FROM lake.shop.pos /* new */ AS r1
JOIN lake.shop.stores /* new */ AS r2 ON r1.store = r2.store AND r1.qty > 1
JOIN lake.shop.items /* new */ AS r3 ON r3.item = r1.item
