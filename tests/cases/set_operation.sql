-- # EXCEPT
-- columns: store
SELECT store FROM pos EXCEPT SELECT store FROM stores
-- becomes
SELECT store_3 AS store
FROM (
  SELECT store_3, sum(in_first) AS in_first_sum, sum(in_second) AS in_second_sum
  FROM (
    SELECT store AS store_3, 1 AS in_first, 0 AS in_second
    FROM lake.shop.pos /* new */
    UNION ALL
    SELECT store AS store_3, 0 AS in_first, 1 AS in_second
    FROM lake.shop.stores /* new */
  )
  GROUP BY store_3
)
WHERE in_first_sum > 0 AND in_second_sum = 0

-- # INTERSECT ALL
-- columns: store
SELECT store FROM pos INTERSECT ALL SELECT store FROM stores
-- becomes
SELECT r1.store_3 AS store
FROM (
  SELECT store_3, least(in_first_sum, in_second_sum) AS copies
  FROM (
    SELECT store_3, sum(in_first) AS in_first_sum, sum(in_second) AS in_second_sum
    FROM (
      SELECT store AS store_3, 1 AS in_first, 0 AS in_second
      FROM lake.shop.pos /* new */
      UNION ALL
      SELECT store AS store_3, 0 AS in_first, 1 AS in_second
      FROM lake.shop.stores /* new */
    )
    GROUP BY store_3
  )
) AS r1
LATERAL VIEW explode(sequence(0L, greatest(r1.copies - 1, 0L) DIV 1000000)) _vk_chunks AS _vk_chunk
LATERAL VIEW explode(array_repeat(0, CAST(least(r1.copies - _vk_chunk * 1000000, 1000000) AS INT))) _vk_copies AS _vk_copy
