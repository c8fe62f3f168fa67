-- Ranks, neighbours, running and framed aggregates, over rows and over groups; top rows of a partition.
SELECT oid, num, row_number() OVER (PARTITION BY part ORDER BY price) AS rn FROM l;
SELECT part, num, sum(qty) OVER (PARTITION BY part) AS s, rank() OVER (PARTITION BY part ORDER BY price DESC) AS r FROM l;
SELECT part, num, lag(price) OVER (PARTITION BY part ORDER BY num) AS p, sum(price) OVER (PARTITION BY part ORDER BY num ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS w FROM l;
SELECT part, first_value(price) OVER (PARTITION BY part ORDER BY num) AS f, percent_rank() OVER (PARTITION BY part ORDER BY price) AS pr, ntile(2) OVER (PARTITION BY part ORDER BY num) AS nt FROM l;
SELECT * FROM (SELECT part, num, price, row_number() OVER (PARTITION BY part ORDER BY price DESC) AS rn FROM l) WHERE rn <= 2;
SELECT part, num FROM l QUALIFY dense_rank() OVER (PARTITION BY part ORDER BY price) = 1;
SELECT part, price, rank() OVER (PARTITION BY part ORDER BY price) AS r FROM l QUALIFY r < 3;
SELECT name, sum(bal) AS s, rank() OVER (ORDER BY sum(bal) DESC) AS r FROM c GROUP BY name;
SELECT name, id, d / sum(d) OVER (PARTITION BY name) AS share FROM c;
SELECT id, bal, bal / sum(bal) OVER () AS share FROM c;
SELECT cid, day, total, sum(total) OVER w AS run, avg(total) OVER (PARTITION BY cid) AS a FROM o WINDOW w AS (PARTITION BY cid ORDER BY day);
SELECT part, num, count(*) OVER (PARTITION BY part) AS n, count(*) OVER () AS every FROM l;
SELECT DISTINCT part, max(qty) OVER (PARTITION BY part) AS m FROM l;
SELECT part, count(*) AS n FROM (SELECT part, row_number() OVER (PARTITION BY oid ORDER BY price DESC, num) AS rn FROM l) WHERE rn = 1 GROUP BY part;
SELECT grouping(name) AS g, name, nation, sum(bal) AS s, rank() OVER (PARTITION BY grouping(name) ORDER BY sum(bal)) AS r FROM c GROUP BY ROLLUP (name, nation);
