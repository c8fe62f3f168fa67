-- Iceberg has no intervals. No column of these views is one, but what is stored for them: CREATE failed.
CREATE TABLE visits (id INT, page STRING, started TIMESTAMP, ended TIMESTAMP) USING iceberg;
INSERT INTO visits VALUES
(1, 'a', TIMESTAMP'2024-01-01 10:00:00', TIMESTAMP'2024-01-01 10:05:00'),
(2, 'a', TIMESTAMP'2024-01-01 11:00:00', TIMESTAMP'2024-01-01 13:30:00'),
(3, 'b', TIMESTAMP'2024-01-01 12:00:00', NULL);
CREATE MATERIALIZED VIEW v1 WITH NO DATA AS
SELECT id, page FROM visits ORDER BY ended - started DESC LIMIT 2;
CREATE MATERIALIZED VIEW v2 WITH NO DATA AS
SELECT page, count(*) AS n FROM visits GROUP BY page HAVING max(ended - started) > INTERVAL '1' HOUR;
CREATE MATERIALIZED VIEW v3 WITH NO DATA AS
SELECT page, extract(MINUTE FROM max(ended - started)) AS longest FROM visits GROUP BY page;
CREATE MATERIALIZED VIEW v4 WITH NO DATA AS
SELECT page, extract(SECOND FROM avg(ended - started)) AS seconds FROM visits GROUP BY page;
CREATE MATERIALIZED VIEW v5 WITH NO DATA AS
SELECT count(*) AS n FROM visits GROUP BY ended - started;
CREATE MATERIALIZED VIEW v6 WITH NO DATA AS
SELECT id, rank() OVER (PARTITION BY ended - started ORDER BY id) AS r FROM visits;
CREATE MATERIALIZED VIEW v8 WITH NO DATA AS
SELECT count(DISTINCT ended - started) AS n, count(DISTINCT long) AS m
FROM (SELECT *, (SELECT max(ended - started) FROM visits) AS long FROM visits) q;
CREATE MATERIALIZED VIEW v9 WITH NO DATA AS
SELECT page, count(*) AS n, max(NULL) IS NULL AS nothing FROM visits GROUP BY page, NULL;
CREATE MATERIALIZED VIEW v10 WITH NO DATA AS
SELECT count(*) AS n FROM (SELECT DISTINCT ended - started AS d FROM visits) q;
CREATE MATERIALIZED VIEW v11 WITH NO DATA AS
SELECT page, rank() OVER (ORDER BY max(ended - started)) AS r FROM visits GROUP BY page;
CREATE MATERIALIZED VIEW v12 WITH NO DATA AS
SELECT page, extract(DAY FROM sum(ended - started)) AS days, avg(id) AS mean FROM visits GROUP BY page;
--! refresh
INSERT INTO visits VALUES
(4, 'b', TIMESTAMP'2024-01-01 12:00:00', TIMESTAMP'2024-01-01 20:00:00');
--! refresh
DELETE FROM visits WHERE id = 2;
--! refresh
