-- # A sliding window
-- columns: item
SELECT item FROM pos WHERE d >= current_date - INTERVAL 7 DAYS AND qty > 0
-- becomes
SELECT item
FROM lake.shop.pos /* new */
WHERE d >= (SELECT max(now) FROM _clock.UTC.date) - INTERVAL 7 DAYS AND qty > 0

-- # Over the one input of a join that it concerns
-- columns: item, city
SELECT p.item, s.city FROM pos p JOIN stores s ON s.store = p.store WHERE p.d BETWEEN date_sub(curdate(), 3) AND p.d
-- becomes
SELECT r1.item, r2.city
FROM (
  SELECT store, item, d
  FROM lake.shop.pos /* new */
  WHERE d BETWEEN date_sub((SELECT max(now) FROM _clock.UTC.date), 3) AND d
) AS r1
JOIN lake.shop.stores /* new */ AS r2 ON r2.store = r1.store

-- # Below groups
-- columns: store, n
SELECT store, count(*) AS n FROM pos WHERE CAST(d AS TIMESTAMP) > now() GROUP BY store
-- becomes
SELECT store, count(*) AS n
FROM lake.shop.pos /* new */
WHERE CAST(d AS TIMESTAMP) > (SELECT max(now) FROM _clock.UTC.timestamp)
GROUP BY store

-- # In the select list it is a subquery like any other
-- columns: item, today
SELECT item, current_date AS today FROM pos
-- becomes
SELECT r1.item, r2.max_now AS today
FROM lake.shop.pos /* new */ AS r1
CROSS JOIN (
  SELECT max(now) AS max_now
  FROM _clock.UTC.date /* new */
) AS r2
