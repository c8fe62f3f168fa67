-- # ORDER BY … LIMIT
-- columns: item, qty
SELECT item, qty FROM pos ORDER BY qty DESC, 1 LIMIT 3
-- becomes
SELECT item, qty
FROM (
  SELECT
    item,
    qty,
    row_number() OVER (ORDER BY qty DESC NULLS LAST, item ASC NULLS FIRST) AS row_number
  FROM lake.shop.pos /* new */
)
WHERE row_number <= 3

-- # OFFSET, by a column that is not shown
-- columns: item
SELECT item FROM pos ORDER BY qty LIMIT 3 OFFSET 2
-- becomes
SELECT item
FROM (
  SELECT item, qty, row_number() OVER (ORDER BY qty ASC NULLS FIRST, item) AS row_number
  FROM lake.shop.pos /* new */
)
WHERE (row_number > 2) AND (row_number <= 5)

-- # Of groups
-- columns: store, n
SELECT store, sum(qty) AS n FROM pos GROUP BY store ORDER BY n DESC LIMIT 2
-- becomes
SELECT store, n
FROM (
  SELECT store, n, row_number() OVER (ORDER BY n DESC NULLS LAST, store) AS row_number
  FROM (
    SELECT store, sum(qty) AS n
    FROM lake.shop.pos /* new */
    GROUP BY store
  )
)
WHERE row_number <= 2

-- # Ordered by what is made of a column that is shown
-- columns: store, qty
SELECT store, p.qty FROM pos p ORDER BY abs(qty) LIMIT 3
-- becomes
SELECT store, qty
FROM (
  SELECT
    store,
    qty,
    `column`,
    row_number() OVER (ORDER BY `column` ASC NULLS FIRST, store, qty) AS row_number
  FROM (
    SELECT store, qty, abs(qty) AS `column`
    FROM lake.shop.pos /* new */
  )
)
WHERE row_number <= 3

-- # Ordered by what is made of a name that the select list alone has
-- columns: store, total
SELECT store, sum(qty) AS total FROM pos GROUP BY store ORDER BY total IS NULL, abs(total) DESC LIMIT 3
-- becomes
SELECT store, total
FROM (
  SELECT
    store,
    total,
    `column`,
    column_2,
    row_number() OVER (ORDER BY `column` ASC NULLS FIRST, column_2 DESC NULLS LAST, store, total) AS row_number
  FROM (
    SELECT store, total, total IS NULL AS `column`, abs(total) AS column_2
    FROM (
      SELECT store, sum(qty) AS total
      FROM lake.shop.pos /* new */
      GROUP BY store
    )
  )
)
WHERE row_number <= 3
