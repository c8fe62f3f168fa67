-- # The user's words, at the same place
-- columns: store, qty
SELECT store, qty FROM pos WHERE qty > 3 AND note LIKE '%x%' OR store IN (1, 2)
-- becomes
SELECT store, qty
FROM lake.shop.pos /* new */
WHERE qty > 3 AND note LIKE '%x%' OR store IN (1, 2)

-- # The text is kept, letter for letter
-- columns: n
SELECT  UPPER( note )||'--'  AS n FROM pos WHERE d >= DATE '2024-01-01'
-- becomes
SELECT UPPER( note )||'--' AS n
FROM lake.shop.pos /* new */
WHERE d >= DATE '2024-01-01'

-- # What LIKE ANY and LIKE ALL compare with is a list, and no struct
-- columns: a
SELECT note NOT ILIKE ALL ('a%', p.note) AS a FROM pos p WHERE note LIKE ANY ('a%', note) OR note LIKE SOME ('b', note)
-- becomes
SELECT note NOT ILIKE ALL ('a%', note) AS a
FROM lake.shop.pos /* new */
WHERE note LIKE ANY ('a%', note) OR note LIKE SOME ('b', note)
