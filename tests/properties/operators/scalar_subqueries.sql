-- One value for all rows, for each key, for each combination of outer columns; in SELECT, WHERE, HAVING, CASE.
SELECT oid, total FROM o WHERE total > (SELECT avg(total) FROM o);
SELECT oid, num FROM l WHERE price > (SELECT 0.8 * avg(l2.price) FROM l l2 WHERE l2.part = l.part);
SELECT c.id, (SELECT count(*) FROM o WHERE o.cid = c.id) AS n, (SELECT max(total) FROM o WHERE o.cid = c.id) AS m FROM c;
SELECT id, (SELECT sum(total) FROM o WHERE o.cid < c.id) AS below FROM c;
SELECT id, (SELECT count(*) + 1 FROM o WHERE o.cid + 1 <=> c.nation AND o.total > 2) AS k FROM c;
SELECT part, sum(qty) AS q FROM l GROUP BY part HAVING sum(qty) > (SELECT avg(qty) FROM l);
SELECT id, CASE WHEN bal > (SELECT avg(bal) FROM c) THEN 'rich' ELSE 'poor' END AS w FROM c;
WITH t AS (SELECT cid, sum(total) AS s FROM o GROUP BY cid) SELECT a.cid, a.s FROM t a WHERE a.s = (SELECT max(s) FROM t);
SELECT l.part FROM l WHERE l.qty < (SELECT avg(qty) FROM l x WHERE x.part = l.part) AND l.oid IN (SELECT oid FROM o WHERE total > 2 AND cid IN (SELECT id FROM c WHERE nation = 2));
SELECT oid, (SELECT max(name) FROM c WHERE c.id = o.cid) AS name FROM o;
