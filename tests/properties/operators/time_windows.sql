-- Windows of time: one after the other, overlapping, with gaps in their starts; of days, instants and local times.
SELECT window, count(*) AS n FROM v GROUP BY window(at, '1 hour');
SELECT window.start AS since, window.end AS until, page, sum(hits) AS s FROM v GROUP BY page, window(at, '10 minutes');
SELECT window(at, '1 day').start AS since, max(hits) AS m FROM v WHERE page = 'a' GROUP BY window(at, '1 day');
SELECT window(at, '1 hour', '25 minutes') AS w, count(*) AS n FROM v GROUP BY w;
SELECT window.start AS since, count(hits) AS n FROM v GROUP BY window(local, '1 week', '2 days', '36 hours') HAVING count(*) > 1;
SELECT window, page, avg(hits) AS a FROM v GROUP BY page, window(local, '90 seconds', '30 seconds', '-7 milliseconds');
SELECT window.end AS until, sum(hits) AS s FROM v GROUP BY window(day, '2 days', '1 day');
SELECT since, count(*) AS n FROM (SELECT page, window.start AS since FROM v GROUP BY page, window(at, '1 hour')) GROUP BY since;
SELECT window, id, count(*) AS n FROM c JOIN v ON c.id = v.hits GROUP BY window(at, '1 hour'), id;
-- Of three branches the first two are added up before the third: a text beside a date is one.
SELECT day AS x FROM v UNION ALL SELECT concat('2024-01-0', id + 1, ' 10:00:00') FROM c UNION ALL SELECT at FROM v;
