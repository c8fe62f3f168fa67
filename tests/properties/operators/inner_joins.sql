-- Inner joins: kept by their delta, and by replacing the rows that a change touches (test_operators.py).
SELECT id, name, oid, day, total FROM c JOIN o ON c.id = o.cid;
SELECT name, o.oid, num, qty FROM c JOIN o ON c.id = o.cid JOIN l ON l.oid = o.oid;
SELECT c.id, o.oid, l.num, price * qty AS worth FROM c, o, l WHERE c.id = o.cid AND o.oid = l.oid AND qty > 1;
SELECT o.oid, tags, num, price FROM o JOIN l ON o.oid <=> l.oid;
SELECT a.oid AS one, b.oid AS other, a.cid FROM o a JOIN o b ON a.cid = b.cid AND a.day <= b.day;
SELECT a.id, b.id2, a.bal + b.bal AS both FROM c a JOIN c b ON a.id = b.id2 JOIN o ON o.cid = b.id;
SELECT id, id2, oid, d FROM c JOIN o ON id = cid AND id2 = oid;
SELECT o.total, c.bal, name FROM o JOIN c ON o.total = c.bal;
SELECT day, total, num FROM o JOIN l ON o.oid = l.num AND o.total > l.price;
SELECT id, x.oid, x.n FROM c JOIN (SELECT cid, oid, total * 2 AS n FROM o WHERE total > 1) x ON x.cid = c.id;
SELECT id, per.n FROM c JOIN (SELECT cid, count(*) AS n FROM o GROUP BY cid) per ON per.cid = c.id;
SELECT id, nation, part, l.oid FROM c JOIN l ON nation = part;
SELECT DISTINCT c.id, l.part FROM c JOIN o ON c.id = o.cid JOIN l ON l.oid = o.oid;
SELECT upper(name) AS loud, cid, l.oid FROM c JOIN o ON name = 'a' JOIN l ON l.oid = o.oid WHERE cid IS NOT NULL;
SELECT o.oid AS k, c.id FROM o JOIN c ON CAST(o.cid AS STRING) = CAST(c.id AS STRING) JOIN l ON l.oid = o.oid;
