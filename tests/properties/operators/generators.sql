-- LATERAL VIEW, generators, PIVOT and UNPIVOT, rows that stand in the query.
SELECT oid, tag FROM o LATERAL VIEW explode(tags) x AS tag;
SELECT oid, posexplode(tags) AS (p, tag) FROM o;
SELECT tag, count(*) AS n FROM o LATERAL VIEW OUTER explode(tags) x AS tag GROUP BY tag;
SELECT o.oid, e.t FROM o, LATERAL explode(o.tags) AS e(t);
SELECT s.k, s.v FROM o LATERAL VIEW stack(2, 'total', total, 'cid', CAST(cid AS DECIMAL(12,2))) s AS k, v;
SELECT * FROM (SELECT name, nation, bal FROM c) PIVOT (sum(bal) AS s, count(*) AS n FOR nation IN (1 AS one, 2 AS two));
SELECT id, k, v FROM c UNPIVOT (v FOR k IN (id2, nation));
SELECT oid, k.label FROM o JOIN (VALUES (1, 'one'), (2, 'two')) AS k(n, label) ON o.cid = k.n;
SELECT r.id, count(o.oid) AS n FROM range(0, 5) r LEFT JOIN o ON o.cid = r.id GROUP BY r.id;
SELECT 1 AS one, 'x' AS x;
SELECT oid, net, part FROM l, LATERAL (SELECT qty * price AS net) AS q WHERE q.net > 5;
SELECT part, sum(half) AS s FROM l LEFT JOIN LATERAL (SELECT price / 2 AS half) JOIN LATERAL (SELECT num + 1 AS n) r ON r.n > 2 GROUP BY part;
SELECT oid, t FROM o JOIN LATERAL explode(tags) AS e(t) ON e.t <> 'x' AND total > 1;
