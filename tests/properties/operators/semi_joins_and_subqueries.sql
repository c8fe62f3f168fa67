-- SEMI and ANTI joins; EXISTS, IN and their NOT; in WHERE, beside OR, in the select list; scalar subqueries.
SELECT id, name FROM c LEFT SEMI JOIN o ON c.id = o.cid;
SELECT id, name FROM c LEFT ANTI JOIN o ON c.id = o.cid AND o.total > 2;
SELECT id FROM c WHERE EXISTS (SELECT 1 FROM o WHERE o.cid = c.id AND o.total > c.bal);
SELECT id FROM c WHERE NOT EXISTS (SELECT * FROM o WHERE o.cid = c.id);
SELECT id FROM c WHERE nation IN (SELECT cid FROM o WHERE total > 2);
SELECT id FROM c WHERE nation NOT IN (SELECT cid FROM o WHERE total > 2);
SELECT id FROM c WHERE id NOT IN (SELECT cid FROM o WHERE cid IS NOT NULL);
SELECT id FROM c WHERE (id, nation) IN (SELECT cid, cid FROM o);
SELECT id, nation FROM c WHERE (id, nation) NOT IN (SELECT cid, cid FROM o WHERE total > 2);
SELECT id FROM c WHERE bal > 2 OR (nation, id) NOT IN (SELECT total, cid FROM o WHERE o.cid = c.id);
SELECT id FROM c WHERE id IN (SELECT cid FROM o GROUP BY cid HAVING count(*) > 1);
SELECT id FROM c WHERE name = 'a' OR EXISTS (SELECT 1 FROM o WHERE o.cid = c.id);
SELECT id, nation IN (SELECT cid FROM o) AS i FROM c WHERE bal > 0 OR nation NOT IN (SELECT cid FROM o);
SELECT id, EXISTS (SELECT 1 FROM o WHERE o.total < c.bal) AS e FROM c;
SELECT id FROM c WHERE bal > 100 OR id IN (SELECT CAST(cid AS STRING) FROM o UNION ALL SELECT '0' || cid FROM o);
SELECT l1.oid, count(*) AS n FROM l l1 WHERE EXISTS (SELECT 1 FROM l l2 WHERE l2.oid = l1.oid AND l2.part <> l1.part) AND NOT EXISTS (SELECT 1 FROM l l3 WHERE l3.oid = l1.oid AND l3.part <> l1.part AND l3.qty > 2) GROUP BY l1.oid;
