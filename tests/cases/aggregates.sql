-- # FILTER becomes CASE
-- columns: store, n, m, s
SELECT store, count(*) FILTER (WHERE qty > 1) AS n, count_if(qty > 1) AS m, sum(qty) FILTER (WHERE note = 'x') AS s FROM pos GROUP BY store
-- becomes
SELECT
  store,
  count(CASE WHEN (qty > 1) THEN (1) END) AS n,
  count_if(qty > 1) AS m,
  sum(CASE WHEN (note = 'x') THEN qty END) AS s
FROM lake.shop.pos /* new */
GROUP BY store

-- # Several arguments, and other names of a function
-- columns: store, c, v, b
SELECT store, corr(qty, price) AS c, variance(qty) AS v, every(qty > 0) AS b FROM pos GROUP BY store
-- becomes
SELECT store, corr(qty, price) AS c, var_samp(qty) AS v, bool_and(qty > 0) AS b
FROM lake.shop.pos /* new */
GROUP BY store

-- # DISTINCT stays in the user's words, except where it changes nothing
-- columns: store, n, t, m
SELECT store, count(DISTINCT item, d) AS n, sum(DISTINCT qty) FILTER (WHERE price > 1) AS t, max(DISTINCT qty) AS m FROM pos GROUP BY store
-- becomes
SELECT
  store,
  count(DISTINCT item, d) AS n,
  sum(DISTINCT qty) FILTER (WHERE price > 1) AS t,
  max(qty) AS m
FROM lake.shop.pos /* new */
GROUP BY store

-- # Constants stay constants
-- columns: store, p, q
SELECT store, percentile(qty, 0.5) AS p, percentile_cont(0.25) WITHIN GROUP (ORDER BY price DESC) AS q FROM pos GROUP BY store
-- becomes
SELECT
  store,
  percentile(qty, 0.5) AS p,
  percentile_cont(0.25) WITHIN GROUP (ORDER BY price DESC) AS q
FROM lake.shop.pos /* new */
GROUP BY store

-- # Lists are sorted, ties are broken
-- columns: store, l, m, f, x, n
SELECT store, collect_list(note) FILTER (WHERE qty > 0) AS l, mode(item) AS m, min_by(item, d) AS f, max_by(item, d) AS x, listagg(note, ',') AS n FROM pos GROUP BY store
-- becomes
SELECT
  store,
  sort_array(collect_list) AS l,
  m,
  (min).v AS f,
  try_element_at(array_sort(collect_list_2, (_vk_l, _vk_r) -> CASE WHEN _vk_l.k > _vk_r.k THEN -1 WHEN _vk_l.k < _vk_r.k THEN 1 WHEN _vk_l.v <=> _vk_r.v THEN 0 WHEN _vk_l.v IS NULL OR _vk_l.v < _vk_r.v THEN -1 ELSE 1 END), 1).v AS x,
  n
FROM (
  SELECT
    store,
    collect_list(note) FILTER (WHERE qty > 0) AS collect_list,
    mode(item, true) AS m,
    min(CASE WHEN (d) IS NOT NULL THEN named_struct('k', d, 'v', item) END) AS min,
    collect_list(CASE WHEN (d) IS NOT NULL THEN named_struct('k', d, 'v', item) END) AS collect_list_2,
    listagg(note, ',') WITHIN GROUP (ORDER BY note) AS n
  FROM lake.shop.pos /* new */
  GROUP BY store
)

-- # A list with an order of its own
-- columns: store, n
SELECT store, string_agg(note, ',') WITHIN GROUP (ORDER BY d DESC) AS n FROM pos GROUP BY store
-- becomes
SELECT store, string_agg(note, ',') WITHIN GROUP (ORDER BY d DESC, note) AS n
FROM lake.shop.pos /* new */
GROUP BY store

-- # Nested
-- columns: store, n
SELECT store, size(collect_set(upper(note))) + 1 AS n FROM pos GROUP BY store HAVING array_agg(qty)[0] > 1
-- becomes
SELECT store, size(sort_array(collect_set)) + 1 AS n
FROM (
  SELECT store, collect_set(upper(note)) AS collect_set, array_agg(qty) AS collect_list
  FROM lake.shop.pos /* new */
  GROUP BY store
)
WHERE sort_array(collect_list)[0] > 1
