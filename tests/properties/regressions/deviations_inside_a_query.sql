-- Spark's standard deviation depends on the order of the rows in its last bits. Inside a query it is made of exact
-- sums, so that rows which a delta takes away are found again.
CREATE TABLE readings (sensor int, day int, level int, price decimal(7,2)) USING iceberg;
INSERT INTO readings VALUES
(1, 1, 3, 1.10), (1, 1, 4, 2.20), (1, 1, 8, 3.30), (1, 2, 1, 0.10), (1, 2, 1, 0.20), (2, 1, 7, 9.99),
(2, 1, NULL, 5.00), (2, 2, 5, NULL), (NULL, 2, 6, 1.00), (NULL, 2, 2, 3.00);
CREATE MATERIALIZED VIEW unsteady WITH NO DATA AS
SELECT one.sensor, one.spread, two.spread AS next, one.mean
FROM (SELECT sensor, day, stddev_samp(level) AS spread, avg(level) AS mean, count(*) AS n FROM readings
  GROUP BY sensor, day) AS one
JOIN (SELECT sensor, day, stddev_samp(level) AS spread FROM readings GROUP BY sensor, day) AS two
  ON one.sensor <=> two.sensor AND one.day + 1 = two.day
WHERE one.spread > one.mean / 10 OR one.n > 1;
CREATE MATERIALIZED VIEW most_unsteady WITH NO DATA AS
SELECT sensor, day, stddev(level) AS spread, var_pop(price) AS prices FROM readings GROUP BY sensor, day
ORDER BY spread DESC NULLS LAST, sensor LIMIT 2;
CREATE MATERIALIZED VIEW related WITH NO DATA AS
SELECT related, count(*) AS sensors FROM (
  SELECT sensor, round(corr(level, price), 3) AS related, covar_samp(level, price) AS together FROM readings
  GROUP BY sensor)
GROUP BY related;
CREATE MATERIALIZED VIEW spreads WITH NO DATA AS
SELECT DISTINCT spread FROM (SELECT sensor, stddev_pop(price) AS spread FROM readings GROUP BY sensor)
UNION ALL SELECT stddev_pop(level) FROM readings;
INSERT INTO readings VALUES (1, 1, 5, 0.70), (2, 2, 5, 0.30), (3, 1, 5, 0.30);
--! refresh
UPDATE readings SET level = level + 1, price = price / 3 WHERE day = 1;
--! refresh
DELETE FROM readings WHERE sensor = 1 AND level > 4;
--! refresh
DELETE FROM readings;
--! refresh
INSERT INTO readings VALUES (1, 1, 5, 0.70), (1, 1, 6, 0.30), (1, 2, 5, 0.30);
--! refresh
