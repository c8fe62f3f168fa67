-- # LATERAL VIEW
-- columns: item, t
SELECT item, t FROM pos LATERAL VIEW OUTER explode(tags) x AS t WHERE t <> 'a'
-- becomes
SELECT r1.item, _vk_rows.t
FROM lake.shop.pos /* new */ AS r1
LATERAL VIEW OUTER explode(r1.tags) _vk_rows AS t
WHERE _vk_rows.t <> 'a'

-- # In the select list
-- columns: item, p, t
SELECT item, posexplode(tags) AS (p, t) FROM pos
-- becomes
SELECT r1.item, _vk_rows.p, _vk_rows.t
FROM lake.shop.pos /* new */ AS r1
LATERAL VIEW posexplode(r1.tags) _vk_rows AS p, t

-- # LATERAL in FROM
-- columns: item, t
SELECT p.item, e.t FROM pos p, LATERAL explode(p.tags) AS e(t)
-- becomes
SELECT r1.item, _vk_rows.t
FROM lake.shop.pos /* new */ AS r1
LATERAL VIEW explode(r1.tags) _vk_rows AS t

-- # UNPIVOT
-- columns: name, k, v
SELECT name, k, v FROM items UNPIVOT (v FOR k IN (item, qty AS quantity))
-- becomes
SELECT r1.name, _vk_rows.k, _vk_rows.v
FROM lake.shop.items /* new */ AS r1
LATERAL VIEW stack(2, 'item', r1.item, 'quantity', r1.qty) _vk_rows AS k, v
WHERE _vk_rows.v IS NOT NULL

-- # LATERAL (SELECT …) that computes more columns of a row
-- columns: x, y, z
SELECT q.x, y, z FROM pos p, LATERAL (SELECT p.qty + 1, item) q(x, y)
LEFT JOIN LATERAL (SELECT price * qty AS z) WHERE q.x < z
-- becomes
SELECT `column` AS x, item_2 AS y, z
FROM (
  SELECT qty + 1 AS `column`, item AS item_2, price * qty AS z
  FROM lake.shop.pos /* new */
)
WHERE `column` < z

-- # JOIN LATERAL with a condition
-- columns: item, t
SELECT p.item, e.t FROM pos p JOIN LATERAL explode(p.tags) AS e(t) ON e.t <> 'a'
-- becomes
SELECT r1.item, _vk_rows.t
FROM lake.shop.pos /* new */ AS r1
LATERAL VIEW explode(r1.tags) _vk_rows AS t
WHERE _vk_rows.t <> 'a'
