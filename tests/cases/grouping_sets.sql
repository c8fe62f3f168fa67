-- # ROLLUP: every row once for each set, and the number of the set is a key
-- columns: store, item, n, t
SELECT store, item, count(*) AS n, sum(store) AS t FROM pos GROUP BY ROLLUP (store, item)
-- becomes
SELECT store_2 AS store, item_2 AS item, count(*) AS n, sum(store) AS t
FROM (
  SELECT
    CASE WHEN _vk_repeats.grouping_set IN (0, 1) THEN r1.store END AS store_2,
    CASE WHEN _vk_repeats.grouping_set IN (0) THEN r1.item END AS item_2,
    _vk_repeats.grouping_set,
    r1.store
  FROM lake.shop.pos /* new */ AS r1
  LATERAL VIEW explode(array(0, 1, 2)) _vk_repeats AS grouping_set
)
GROUP BY store_2, item_2, grouping_set

-- # CUBE with GROUPING and GROUPING_ID
-- columns: s, y, g, i, n
SELECT store AS s, year(d) AS y, grouping(store) AS g, grouping_id() AS i, count(*) AS n FROM pos GROUP BY CUBE (store, year(d)) HAVING grouping_id(store) = 0
-- becomes
SELECT
  s,
  y,
  (CAST(CASE WHEN grouping_set IN (2, 3) THEN 1 ELSE 0 END AS TINYINT)) AS g,
  (CAST(CASE grouping_set WHEN 0 THEN 0 WHEN 1 THEN 1 WHEN 2 THEN 2 WHEN 3 THEN 3 END AS BIGINT)) AS i,
  n
FROM (
  SELECT s, y, grouping_set, count(*) AS n
  FROM (
    SELECT
      CASE WHEN _vk_repeats.grouping_set IN (0, 1) THEN r1.store END AS s,
      CASE WHEN _vk_repeats.grouping_set IN (0, 2) THEN r1.y_of END AS y,
      _vk_repeats.grouping_set
    FROM (
      SELECT store, year(d) AS y_of
      FROM lake.shop.pos /* new */
    ) AS r1
    LATERAL VIEW explode(array(0, 1, 2, 3)) _vk_repeats AS grouping_set
  )
  GROUP BY s, y, grouping_set
)
WHERE (CAST(CASE grouping_set WHEN 0 THEN 0 WHEN 1 THEN 0 WHEN 2 THEN 1 WHEN 3 THEN 1 END AS BIGINT)) = 0

-- # GROUPING SETS after a plain key
-- columns: store, item, d, n
SELECT store, item, d, count(qty + 1) AS n FROM pos GROUP BY store, GROUPING SETS ((item, d), d, ())
-- becomes
SELECT store_2 AS store, item_2 AS item, d_2 AS d, count(n_of) AS n
FROM (
  SELECT
    r1.store AS store_2,
    CASE WHEN _vk_repeats.grouping_set IN (0) THEN r1.item END AS item_2,
    CASE WHEN _vk_repeats.grouping_set IN (0, 1) THEN r1.d END AS d_2,
    _vk_repeats.grouping_set,
    r1.n_of
  FROM (
    SELECT store, item, d, qty + 1 AS n_of
    FROM lake.shop.pos /* new */
  ) AS r1
  LATERAL VIEW explode(array(0, 1, 2)) _vk_repeats AS grouping_set
)
GROUP BY store_2, item_2, d_2, grouping_set

-- # WITH ROLLUP
-- columns: store, n
SELECT store, count(*) AS n FROM pos GROUP BY store WITH ROLLUP
-- becomes
SELECT store_2 AS store, count(*) AS n
FROM (
  SELECT
    CASE WHEN _vk_repeats.grouping_set IN (0) THEN r1.store END AS store_2,
    _vk_repeats.grouping_set
  FROM lake.shop.pos /* new */ AS r1
  LATERAL VIEW explode(array(0, 1)) _vk_repeats AS grouping_set
)
GROUP BY store_2, grouping_set
