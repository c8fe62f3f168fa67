-- # Comments go, also those that would swallow what follows
-- columns: qty, store
SELECT p.qty -- how many
  , /* where */ p.store FROM pos p CROSS JOIN stores s WHERE p.store /* = 'x' */ = -- the same
 s.store
-- becomes
SELECT r1.qty, r1.store
FROM lake.shop.pos /* new */ AS r1
JOIN lake.shop.stores /* new */ AS r2 ON r1.store = r2.store
