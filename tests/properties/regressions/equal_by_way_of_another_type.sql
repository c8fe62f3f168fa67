-- '01' = 1 and 1 = '1', but '01' is not '1': the row of a that the new row of c joins was not looked at.
CREATE TABLE a (id INT, a STRING) USING iceberg;
CREATE TABLE b (b INT) USING iceberg;
CREATE TABLE c (c STRING) USING iceberg;
CREATE TABLE r (x STRING, w INT) USING iceberg;
INSERT INTO a VALUES
(1, '01');
INSERT INTO b VALUES
(1);
INSERT INTO c VALUES
('7');
INSERT INTO r VALUES
('5', 0);
CREATE MATERIALIZED VIEW v1 WITH NO DATA AS
SELECT a.id, a.a, c.c, r.w FROM a JOIN b ON a.a = b.b JOIN c ON b.b = c.c LEFT JOIN r ON r.x = a.a;
--! refresh
INSERT INTO c VALUES
('1');
INSERT INTO r VALUES
('9', 1);
--! refresh
DELETE FROM c WHERE c = '1';
DELETE FROM r WHERE x = '9';
--! refresh
