-- # An alias to the left can be used to the right
-- columns: q2, q3
SELECT qty * 2 AS q2, q2 + 1 AS q3 FROM pos
-- becomes
SELECT qty * 2 AS q2, (qty * 2) + 1 AS q3
FROM lake.shop.pos /* new */

-- # A column comes before an alias of the same name
-- columns: qty, x
SELECT store AS qty, qty + 1 AS x FROM pos
-- becomes
SELECT store AS qty, qty + 1 AS x
FROM lake.shop.pos /* new */

-- # Stars
-- columns: store, city, region, qty
SELECT s.*, p.qty FROM stores s JOIN pos p ON p.store = s.store
-- becomes
SELECT r1.store, r1.city, r1.region, r2.qty
FROM lake.shop.stores /* new */ AS r1
JOIN lake.shop.pos /* new */ AS r2 ON r2.store = r1.store

-- # Stars but for some columns
-- columns: store, city
SELECT * EXCEPT (region) FROM stores
-- becomes
SELECT store, city
FROM lake.shop.stores /* new */

-- # The same column twice
-- columns: a, b
SELECT qty AS a, qty AS b FROM pos
-- becomes
SELECT qty AS a, qty AS b
FROM lake.shop.pos /* new */

-- # Columns that change names
-- columns: qty, store
SELECT store AS qty, qty AS store FROM pos
-- becomes
SELECT store AS qty, qty AS store
FROM lake.shop.pos /* new */

-- # Fields of structs keep the names that Spark gives them
-- columns: j, t, n
SELECT to_json(struct(store, count(*), sum(qty) + 1)) AS j, (store, item) AS t, count(*) AS n
FROM pos GROUP BY store, item
-- becomes
SELECT
  to_json(struct(store AS store, count AS col2, sum_qty + 1)) AS j,
  struct(store AS store, item AS item) AS t,
  count AS n
FROM (
  SELECT store, item, count(*) AS count, sum(qty) AS sum_qty
  FROM lake.shop.pos /* new */
  GROUP BY store, item
)

-- # An array with an index keeps what is in its parentheses
-- columns: a
SELECT array(p.qty, store)[p.item] AS a FROM pos p
-- becomes
SELECT array(qty, store)[item] AS a
FROM lake.shop.pos /* new */
