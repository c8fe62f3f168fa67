-- # Keys and arguments that are plain columns
-- columns: store, n, total
SELECT store, count(*) AS n, sum(qty) AS total FROM pos GROUP BY store
-- becomes
SELECT store, count(*) AS n, sum(qty) AS total
FROM lake.shop.pos /* new */
GROUP BY store

-- # Computed keys and arguments get a projection of their own
-- columns: y, r
SELECT year(d) AS y, sum(qty * price) / count(1) + 1 AS r FROM pos GROUP BY year(d)
-- becomes
SELECT y, sum / count + 1 AS r
FROM (
  SELECT y, sum(sum_of) AS sum, count(*) AS count
  FROM (
    SELECT year(d) AS y, qty * price AS sum_of
    FROM lake.shop.pos /* new */
  )
  GROUP BY y
)

-- # A key inside a larger expression
-- columns: next, n
SELECT YEAR( d ) + 1 AS next, count(qty) AS n FROM pos GROUP BY year(d)
-- becomes
SELECT key + 1 AS next, n
FROM (
  SELECT key, count(qty) AS n
  FROM (
    SELECT qty, year(d) AS key
    FROM lake.shop.pos /* new */
  )
  GROUP BY key
)

-- # By position, by alias, and ALL
-- columns: s, y, n
SELECT store AS s, year(d) AS y, count(*) AS n FROM pos GROUP BY 1, y
-- becomes
SELECT store AS s, y, count(*) AS n
FROM (
  SELECT store, year(d) AS y
  FROM lake.shop.pos /* new */
)
GROUP BY store, y

-- # ALL
-- columns: s, y, n
SELECT store AS s, year(d) AS y, count(*) AS n FROM pos GROUP BY ALL
-- becomes
SELECT store AS s, y, count(*) AS n
FROM (
  SELECT store, year(d) AS y
  FROM lake.shop.pos /* new */
)
GROUP BY store, y

-- # Equal calls are computed once; MEAN is AVG
-- columns: a, b
SELECT sum(qty) + max(qty) AS a, SUM( qty ) - mean(qty) AS b FROM pos
-- becomes
SELECT sum_qty + max_qty AS a, sum_qty - avg_qty AS b
FROM (
  SELECT sum(qty) AS sum_qty, max(qty) AS max_qty, avg(qty) AS avg_qty
  FROM lake.shop.pos /* new */
)

-- # HAVING, with a call that is not selected, and an alias that hides a column
-- columns: qty, store
SELECT sum(qty) AS qty, store FROM pos GROUP BY store HAVING sum(qty) > 4 AND max(item) < 9
-- becomes
SELECT qty_2 AS qty, store
FROM (
  SELECT store, sum(qty) AS qty_2, max(item) AS max_item
  FROM lake.shop.pos /* new */
  GROUP BY store
)
WHERE qty_2 > 4 AND max_item < 9

-- # Aggregates over joins over aggregates
-- columns: region, best
SELECT region, max(t) AS best FROM (SELECT store, sum(qty) AS t FROM pos GROUP BY store) JOIN stores USING (store) GROUP BY region
-- becomes
SELECT r2.region, max(r1.t) AS best
FROM (
  SELECT store, sum(qty) AS t
  FROM lake.shop.pos /* new */
  GROUP BY store
) AS r1
JOIN lake.shop.stores /* new */ AS r2 ON r1.store = r2.store
GROUP BY r2.region

-- # Fields of a struct as keys
-- columns: b, c, n
SELECT p.info.a + 1 AS b, info.b.c, count(*) AS n FROM pos p GROUP BY info.a, info.b.c HAVING info.a > 3
-- becomes
SELECT key + 1 AS b, c, n
FROM (
  SELECT key, c, count(*) AS n
  FROM (
    SELECT info.a AS key, info.b.c AS c
    FROM lake.shop.pos /* new */
  )
  GROUP BY key, c
)
WHERE key > 3

-- # HAVING by an alias that hides a column which is no key, and by a key that hides an alias
-- columns: store, qty
SELECT -store AS store, sum(qty) AS qty FROM pos GROUP BY store HAVING qty > 4 AND max(qty) < 9 AND store > 1
-- becomes
SELECT -store AS store, qty_2 AS qty
FROM (
  SELECT store, sum(qty) AS qty_2, max(qty) AS max_qty
  FROM lake.shop.pos /* new */
  GROUP BY store
)
WHERE qty_2 > 4 AND max_qty < 9 AND store > 1
