-- ORDER BY … LIMIT and OFFSET: of rows, of groups, inside other queries.
SELECT oid, total FROM o ORDER BY total DESC LIMIT 5;
SELECT cid, sum(total) AS t FROM o GROUP BY cid ORDER BY t DESC, cid LIMIT 3 OFFSET 1;
SELECT id FROM c ORDER BY bal * 2 DESC LIMIT 2;
(SELECT oid FROM o ORDER BY total DESC LIMIT 3) UNION ALL (SELECT oid FROM o ORDER BY day LIMIT 2);
SELECT name, count(*) AS n FROM (SELECT name FROM c ORDER BY bal LIMIT 4) GROUP BY name;
SELECT cid, sum(total) AS t, count(*) AS n FROM o GROUP BY cid ORDER BY t / n DESC, coalesce(cid, 9) LIMIT 3;
SELECT id AS s, -nation AS far FROM c ORDER BY far IS NULL, abs(far) + s DESC LIMIT 3;
SELECT cid, sum(total) AS total FROM o GROUP BY cid ORDER BY sum(o.total) DESC LIMIT 2;
