-- # Rows that tie are told apart by what is used of them
-- columns: item, rn
SELECT item, row_number() OVER (PARTITION BY store ORDER BY qty DESC) AS rn FROM pos
-- becomes
SELECT item, row_number() OVER (PARTITION BY store ORDER BY qty DESC NULLS LAST, item) AS rn
FROM lake.shop.pos /* new */

-- # Peers are one in ranks and in frames of RANGE
-- columns: item, r, s
SELECT item, rank() OVER w AS r, count(qty) OVER w AS s FROM pos WINDOW w AS (PARTITION BY store ORDER BY qty)
-- becomes
SELECT
  item,
  rank() OVER (PARTITION BY store ORDER BY qty ASC NULLS FIRST) AS r,
  count(qty) OVER (PARTITION BY store ORDER BY qty ASC NULLS FIRST) AS s
FROM lake.shop.pos /* new */

-- # Sums over a whole partition are added up in one order
-- columns: item, share
SELECT item, qty / sum(qty) OVER (PARTITION BY store, year(d)) AS share FROM pos
-- becomes
SELECT item, qty / sum AS share
FROM (
  SELECT
    store,
    item,
    qty,
    partition,
    sum(qty) OVER (PARTITION BY store, partition ORDER BY item, qty ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS sum
  FROM (
    SELECT store, item, qty, year(d) AS partition
    FROM lake.shop.pos /* new */
  )
)

-- # A frame of ROWS; two partitionings
-- columns: item, a, b
SELECT item, sum(qty) OVER (PARTITION BY store ORDER BY d ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS a, max(qty) OVER (PARTITION BY item) AS b FROM pos
-- becomes
SELECT item, sum AS a, max(qty) OVER (PARTITION BY item) AS b
FROM (
  SELECT
    store,
    item,
    qty,
    d,
    sum(qty) OVER (PARTITION BY store ORDER BY d ASC NULLS FIRST, item, qty ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS sum
  FROM lake.shop.pos /* new */
)

-- # Over groups
-- columns: store, n, r
SELECT store, sum(qty) AS n, rank() OVER (ORDER BY sum(qty) DESC) AS r FROM pos GROUP BY store
-- becomes
SELECT store, n, rank() OVER (ORDER BY n DESC NULLS LAST) AS r
FROM (
  SELECT store, sum(qty) AS n
  FROM lake.shop.pos /* new */
  GROUP BY store
)

-- # QUALIFY
-- columns: item
SELECT item FROM pos QUALIFY row_number() OVER (PARTITION BY store ORDER BY d) = 1
-- becomes
SELECT item
FROM (
  SELECT item, (row_number = 1) AS c_vk_qualify
  FROM (
    SELECT
      store,
      item,
      d,
      row_number() OVER (PARTITION BY store ORDER BY d ASC NULLS FIRST, item) AS row_number
    FROM lake.shop.pos /* new */
  )
)
WHERE c_vk_qualify
