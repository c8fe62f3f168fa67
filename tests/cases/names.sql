-- # Quoted and reserved names
-- columns: a b, select, z
SELECT `a b`, `select`, odd.`select` + 1 AS z FROM odd
-- becomes
SELECT `a b`, `select`, `select` + 1 AS z
FROM lake.shop.odd /* new */

-- # Full names; case does not matter
-- columns: QTY, q2
SELECT QTY, lake.shop.pos.Qty + shop.POS.qty AS q2 FROM Lake.Shop.Pos
-- becomes
SELECT qty AS QTY, qty + qty AS q2
FROM lake.shop.pos /* new */

-- # Fields of structs
-- columns: c, a, q
SELECT info.b.c, p.info.a, tags[0] AS q FROM pos p
-- becomes
SELECT info.b.c AS c, info.a AS a, tags[0] AS q
FROM lake.shop.pos /* new */

-- # A struct named like a table
-- columns: qty
SELECT pos.qty FROM odd
-- becomes
SELECT pos.qty AS qty
FROM lake.shop.odd /* new */

-- # A lambda variable is no column, and captures none
-- columns: t
SELECT transform(xs, x -> x + odd.x) AS t FROM odd
-- becomes
SELECT transform(xs, x -> x + x_2) AS t
FROM (
  SELECT x AS x_2, xs
  FROM lake.shop.odd /* new */
)

-- # Units are no columns
-- columns: a, b
SELECT dateadd(day, 1, d) AS a, extract(year FROM d) AS b FROM pos
-- becomes
SELECT dateadd(day, 1, d) AS a, extract(year FROM d) AS b
FROM lake.shop.pos /* new */

-- # The names of columns show in a struct
-- columns: j
SELECT to_json(struct(p.qty, i.qty AS other, i.qty)) AS j FROM pos p, items i
-- becomes
SELECT to_json(struct(r1.qty AS qty, r2.qty AS other, r2.qty AS qty)) AS j
FROM lake.shop.pos /* new */ AS r1
CROSS JOIN lake.shop.items /* new */ AS r2
