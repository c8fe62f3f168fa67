-- # PIVOT
-- columns: city, a
SELECT * FROM (SELECT city, region, store FROM stores) PIVOT (count(store) FOR region IN ('R' AS a))
-- becomes
SELECT city, CASE WHEN `rows` > 0 THEN a END AS a
FROM (
  SELECT
    city,
    count_if(region <=> ('R')) AS `rows`,
    count(CASE WHEN (region <=> ('R')) THEN store END) AS a
  FROM lake.shop.stores /* new */
  GROUP BY city
)
