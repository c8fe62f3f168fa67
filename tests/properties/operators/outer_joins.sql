-- LEFT, RIGHT and FULL joins: equalities, other conditions, NULL-safe ones, chains, over aggregates.
SELECT c.id, o.oid, o.total FROM c LEFT JOIN o ON c.id = o.cid;
SELECT c.id, o.oid FROM o RIGHT JOIN c ON c.id = o.cid AND o.total > 2;
SELECT c.id, o.oid, c.name FROM c FULL OUTER JOIN o ON c.id = o.cid AND c.bal > 0;
SELECT c.id, o.oid, l.num FROM c LEFT JOIN o ON c.id = o.cid LEFT JOIN l ON l.oid = o.oid;
SELECT c.id, l.num FROM c JOIN o ON c.id = o.cid LEFT JOIN l ON l.oid = o.oid AND l.qty > 1;
SELECT c.id, o.oid FROM c LEFT JOIN o ON c.id < o.cid AND o.total > 5;
SELECT c.id, o.oid FROM c LEFT JOIN o ON c.nation <=> o.cid;
SELECT c.name, count(o.oid) AS n, sum(o.total) AS t FROM c LEFT JOIN o ON c.id = o.cid GROUP BY c.name;
SELECT * FROM (SELECT id, bal FROM c) FULL JOIN (SELECT cid AS id, sum(total) AS t FROM o GROUP BY cid) USING (id);
SELECT * FROM (SELECT cid AS id, sum(total) AS t FROM o GROUP BY cid) RIGHT JOIN (SELECT id, bal FROM c) USING (id);
SELECT id, name FROM c LEFT JOIN o ON id = cid WHERE oid IS NULL;
