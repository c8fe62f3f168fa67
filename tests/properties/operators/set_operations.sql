-- UNION, INTERSECT, EXCEPT, each with and without ALL; NULL is a value like any other.
SELECT id FROM c INTERSECT SELECT cid FROM o;
SELECT id FROM c EXCEPT SELECT cid FROM o;
SELECT cid FROM o INTERSECT ALL SELECT part FROM l;
SELECT part FROM l EXCEPT ALL SELECT cid FROM o;
SELECT id, name FROM c UNION SELECT cid, 'a' FROM o EXCEPT SELECT part, 'a' FROM l;
SELECT nation, count(*) AS n FROM (SELECT nation, name FROM c INTERSECT SELECT nation, 'a' FROM c) GROUP BY nation;
