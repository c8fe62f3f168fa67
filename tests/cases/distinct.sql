-- # DISTINCT over what is selected, not over what is read
-- columns: y
SELECT DISTINCT year(d) AS y FROM pos
-- becomes
SELECT DISTINCT year(d) AS y
FROM lake.shop.pos /* new */

-- # Plain
-- columns: city
SELECT DISTINCT city FROM stores ORDER BY city
-- becomes
SELECT DISTINCT city
FROM lake.shop.stores /* new */
