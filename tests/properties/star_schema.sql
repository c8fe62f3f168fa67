-- ROLLUP with GROUPING
SELECT i_class, i_brand, grouping(i_class) + grouping(i_brand) AS level, sum(ss_qty) AS qty FROM store_sales JOIN item ON ss_item = i_item GROUP BY ROLLUP (i_class, i_brand);
SELECT d_year, c_state, grouping_id(d_year, c_state) AS g, sum(ws_price) AS revenue, count(*) AS n FROM web_sales JOIN date_dim ON ws_day = d_day JOIN customer ON ws_customer = c_customer GROUP BY ROLLUP (d_year, c_state) HAVING count(*) > 1;
-- Ranks and running sums over aggregates
SELECT i_class, i_brand, sum(ss_price) AS revenue, rank() OVER (PARTITION BY i_class ORDER BY sum(ss_price) DESC) AS r FROM store_sales JOIN item ON ss_item = i_item GROUP BY i_class, i_brand;
SELECT d_year, d_month, sum(cs_price) AS revenue, sum(sum(cs_price)) OVER (PARTITION BY d_year ORDER BY d_month ROWS UNBOUNDED PRECEDING) AS running FROM catalog_sales JOIN date_dim ON cs_day = d_day GROUP BY d_year, d_month;
SELECT * FROM (SELECT i_item, i_class, sum(ws_qty) AS qty, rank() OVER (PARTITION BY i_class ORDER BY sum(ws_qty) DESC) AS r FROM web_sales JOIN item ON ws_item = i_item GROUP BY i_item, i_class) WHERE r <= 2;
-- Ratios to a window total
SELECT i_class, i_item, sum(ss_price) AS revenue, sum(ss_price) * 100 / sum(sum(ss_price)) OVER (PARTITION BY i_class) AS share FROM store_sales JOIN item ON ss_item = i_item GROUP BY i_class, i_item;
SELECT c_state, sum(ws_qty) AS qty, sum(ws_qty) / sum(sum(ws_qty)) OVER () AS share FROM web_sales JOIN customer ON ws_customer = c_customer GROUP BY c_state;
-- INTERSECT and EXCEPT of channels
SELECT ss_customer AS customer FROM store_sales JOIN date_dim ON ss_day = d_day WHERE d_year = 2001 INTERSECT SELECT ws_customer FROM web_sales INTERSECT SELECT cs_customer FROM catalog_sales;
SELECT count(*) AS n FROM (SELECT DISTINCT ss_customer, ss_item FROM store_sales EXCEPT SELECT DISTINCT ws_customer, ws_item FROM web_sales);
-- FULL OUTER joins of aggregates
WITH s AS (SELECT ss_customer AS customer, sum(ss_price) AS revenue FROM store_sales GROUP BY ss_customer), w AS (SELECT ws_customer AS customer, sum(ws_price) AS revenue FROM web_sales GROUP BY ws_customer) SELECT coalesce(s.customer, w.customer) AS customer, s.revenue AS store, w.revenue AS web FROM s FULL OUTER JOIN w ON s.customer = w.customer;
WITH s AS (SELECT ss_customer AS c, ss_item AS i FROM store_sales GROUP BY ss_customer, ss_item), w AS (SELECT ws_customer AS c, ws_item AS i FROM web_sales GROUP BY ws_customer, ws_item) SELECT sum(CASE WHEN s.c IS NOT NULL AND w.c IS NULL THEN 1 ELSE 0 END) AS store_only, sum(CASE WHEN s.c IS NULL AND w.c IS NOT NULL THEN 1 ELSE 0 END) AS web_only, sum(CASE WHEN s.c IS NOT NULL AND w.c IS NOT NULL THEN 1 ELSE 0 END) AS both FROM s FULL JOIN w ON s.c = w.c AND s.i = w.i;
-- A CTE used several times with different filters
WITH m AS (SELECT i_class, d_month, sum(ss_qty) AS qty FROM store_sales JOIN item ON ss_item = i_item JOIN date_dim ON ss_day = d_day GROUP BY i_class, d_month) SELECT a.i_class, a.qty AS january, b.qty AS february FROM m a JOIN m b ON a.i_class = b.i_class WHERE a.d_month = 1 AND b.d_month = 2;
WITH r AS (SELECT ws_customer AS c, ws_item AS i, sum(ws_price) AS revenue FROM web_sales GROUP BY ws_customer, ws_item) SELECT x.c, x.revenue FROM r x WHERE x.revenue > (SELECT avg(y.revenue) * 1.2 FROM r y WHERE y.i = x.i);
-- Year-over-year self joins of a CTE
WITH y AS (SELECT c_customer, d_year, sum(ss_price) AS total FROM store_sales JOIN date_dim ON ss_day = d_day JOIN customer ON ss_customer = c_customer GROUP BY c_customer, d_year) SELECT one.c_customer, one.total AS before, two.total AS after FROM y one JOIN y two ON one.c_customer = two.c_customer AND two.d_year = one.d_year + 1 WHERE two.total > one.total;
WITH y AS (SELECT i_brand, d_year, d_month, sum(cs_qty) AS qty FROM catalog_sales JOIN item ON cs_item = i_item JOIN date_dim ON cs_day = d_day GROUP BY i_brand, d_year, d_month) SELECT a.i_brand, a.d_month, a.qty, b.qty AS last_year FROM y a LEFT JOIN y b ON a.i_brand = b.i_brand AND a.d_month = b.d_month AND b.d_year = a.d_year - 1;
-- EXISTS combined with OR
SELECT c_state, count(*) AS n FROM customer WHERE EXISTS (SELECT 1 FROM store_sales WHERE ss_customer = c_customer) AND (EXISTS (SELECT 1 FROM web_sales WHERE ws_customer = c_customer) OR EXISTS (SELECT 1 FROM catalog_sales WHERE cs_customer = c_customer)) GROUP BY c_state;
SELECT c_customer FROM customer WHERE c_state = 'TX' OR NOT EXISTS (SELECT 1 FROM web_sales JOIN item ON ws_item = i_item WHERE ws_customer = c_customer AND i_class = 'books');
-- CASE pivots
SELECT i_class, sum(CASE WHEN d_month = 1 THEN ss_qty ELSE 0 END) AS jan, sum(CASE WHEN d_month = 2 THEN ss_qty END) AS feb FROM store_sales JOIN item ON ss_item = i_item JOIN date_dim ON ss_day = d_day GROUP BY i_class;
SELECT * FROM (SELECT i_brand, d_year, ws_qty FROM web_sales JOIN item ON ws_item = i_item JOIN date_dim ON ws_day = d_day) PIVOT (sum(ws_qty) FOR d_year IN (2001 AS y1, 2002 AS y2));
-- Scalar subqueries in CASE
SELECT CASE WHEN (SELECT count(*) FROM store_sales WHERE ss_qty > 1) > 3 THEN (SELECT avg(ss_price) FROM store_sales) ELSE (SELECT max(ws_price) FROM web_sales) END AS bucket, count(*) AS n FROM customer;
SELECT i_item, CASE WHEN i_price > (SELECT avg(i_price) FROM item) THEN 'dear' WHEN i_price = (SELECT min(i_price) FROM item) THEN 'cheapest' ELSE 'cheap' END AS label FROM item;
-- Three channels by UNION ALL
SELECT channel, i_class, sum(price) AS revenue FROM (SELECT 'store' AS channel, ss_item AS item, ss_price AS price FROM store_sales UNION ALL SELECT 'web', ws_item, ws_price FROM web_sales UNION ALL SELECT 'catalog', cs_item, cs_price FROM catalog_sales) JOIN item ON item = i_item GROUP BY channel, i_class;
SELECT i_item, sum(total) AS total FROM (SELECT ss_item AS i_item, sum(ss_price) AS total FROM store_sales GROUP BY ss_item UNION ALL SELECT ws_item, sum(ws_price) FROM web_sales GROUP BY ws_item UNION ALL SELECT cs_item, sum(cs_price) FROM catalog_sales GROUP BY cs_item) WHERE i_item IN (SELECT i_item FROM item WHERE i_class = 'shoes') GROUP BY i_item;
-- Correlated averages
SELECT c_state, i.i_item, count(*) AS n FROM item i JOIN web_sales ON ws_item = i.i_item JOIN customer ON ws_customer = c_customer WHERE i.i_price > 1.2 * (SELECT avg(j.i_price) FROM item j WHERE j.i_class = i.i_class) GROUP BY c_state, i.i_item;
SELECT sum(cs_price) AS excess FROM catalog_sales JOIN item ON i_item = cs_item JOIN date_dim ON d_day = cs_day WHERE cs_price > (SELECT 1.3 * avg(cs_price) FROM catalog_sales JOIN date_dim ON d_day = cs_day WHERE cs_item = i_item AND d_year = 2001);
