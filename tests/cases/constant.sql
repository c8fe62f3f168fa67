-- # VALUES
-- columns: qty, label
SELECT p.qty, k.label FROM pos p JOIN (VALUES (1, 'one'), (2, upper('two'))) AS k(n, label) ON p.store = k.n
-- becomes
SELECT r1.qty, r2.col2 AS label
FROM lake.shop.pos /* new */ AS r1
JOIN (
  SELECT col1, col2
  FROM (VALUES (1, 'one'), (2, upper('two'))) AS _vk_constant(col1, col2)
) AS r2 ON r1.store = r2.col1

-- # No FROM
-- columns: one
SELECT 1 + 1 AS one
-- becomes
SELECT 1 + 1 AS one
FROM (VALUES (0)) AS _vk_constant(nothing)

-- # range
-- columns: id
SELECT id FROM range(1, 10)
-- becomes
SELECT id
FROM (SELECT * FROM range(1, 10)) AS _vk_constant(id)
