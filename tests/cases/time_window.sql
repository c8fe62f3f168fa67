-- # Windows one after the other
-- columns: window, n
SELECT window, count(*) AS n FROM visits GROUP BY window(at, '1 hour')
-- becomes
SELECT `window`, count(*) AS n
FROM (
  SELECT
    named_struct('start', (timestamp_micros(begin)), 'end', (timestamp_micros((begin + 3600000000L)))) AS `window`
  FROM (
    SELECT (unix_micros(`at`)) - pmod((unix_micros(`at`)), 3600000000L) AS begin
    FROM lake.shop.visits /* new */
    WHERE `at` IS NOT NULL
  )
)
GROUP BY `window`

-- # Overlapping, with a start of their own; the window's name and its fields
-- columns: page, s, e
SELECT page, window.start AS s, window(local, '1 hour', '25 minutes', '-3 seconds').end AS e FROM visits v
GROUP BY page, window(local, '1 hour', '25 minutes', '-3 seconds')
-- becomes
SELECT page, `window`.start AS s, `window`.end AS e
FROM (
  SELECT page, `window`
  FROM (
    SELECT
      r1.page,
      r1.local,
      named_struct('start', ((TIMESTAMP_NTZ'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, CAST((r1.begin - _vk_rows.place * 1500000000L) AS DECIMAL(20, 0)) * 0.000001BD))), 'end', ((TIMESTAMP_NTZ'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, CAST(((r1.begin - _vk_rows.place * 1500000000L) + 3600000000L) AS DECIMAL(20, 0)) * 0.000001BD)))) AS `window`
    FROM (
      SELECT
        page,
        local,
        ((datediff(CAST(local AS DATE), DATE'1970-01-01') * 86400000000L + hour(local) * 3600000000L + minute(local) * 60000000L + CAST(extract(SECOND FROM local) * 1000000 AS BIGINT))) - pmod(((datediff(CAST(local AS DATE), DATE'1970-01-01') * 86400000000L + hour(local) * 3600000000L + minute(local) * 60000000L + CAST(extract(SECOND FROM local) * 1000000 AS BIGINT))) - -3000000L, 1500000000L) AS begin
      FROM lake.shop.visits /* new */
      WHERE local IS NOT NULL
    ) AS r1
    LATERAL VIEW explode(sequence(0, 2)) _vk_rows AS place
  )
  WHERE `window`.start <= local AND local < `window`.end
  GROUP BY page, `window`
)

-- # By an alias, of days, over conditions
-- columns: w, n
SELECT window(d, '1 week') AS w, sum(qty) AS n FROM pos WHERE qty > 1 GROUP BY w HAVING sum(qty) > 3
-- becomes
SELECT `window` AS w, n
FROM (
  SELECT `window`, sum(qty) AS n
  FROM (
    SELECT
      qty,
      named_struct('start', (timestamp_micros(begin)), 'end', (timestamp_micros((begin + 604800000000L)))) AS `window`
    FROM (
      SELECT
        qty,
        (unix_micros(CAST(d AS TIMESTAMP))) - pmod((unix_micros(CAST(d AS TIMESTAMP))), 604800000000L) AS begin
      FROM lake.shop.pos /* new */
      WHERE qty > 1 AND d IS NOT NULL
    )
  )
  GROUP BY `window`
)
WHERE n > 3

-- # A column and a clause of that word
-- columns: window, n
SELECT window, sum(qty) OVER w AS n FROM (SELECT item AS window, store, qty FROM pos) WINDOW w AS (PARTITION BY store)
-- becomes
SELECT
  item AS `window`,
  sum(qty) OVER (PARTITION BY store ORDER BY item, qty ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS n
FROM lake.shop.pos /* new */
