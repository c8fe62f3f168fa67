-- # LEFT SEMI JOIN
-- columns: qty
SELECT qty FROM pos LEFT SEMI JOIN stores ON pos.store = stores.store AND city = 'C'
-- becomes
SELECT r1.qty
FROM lake.shop.pos /* new */ AS r1
LEFT SEMI JOIN lake.shop.stores /* new */ AS r2 ON r1.store = r2.store AND r2.city = 'C'

-- # ANTI JOIN USING
-- columns: qty
SELECT qty FROM pos ANTI JOIN stores USING (store)
-- becomes
SELECT r1.qty
FROM lake.shop.pos /* new */ AS r1
LEFT ANTI JOIN lake.shop.stores /* new */ AS r2 ON r1.store = r2.store
