-- Change the address, unless another account has it by now; the unique index is the last guard.
UPDATE account SET address = :address, address_key = :address_key
WHERE id = :id AND deleted_at IS NULL
  AND NOT EXISTS (SELECT FROM account o WHERE o.address_key = :address_key AND o.deleted_at IS NULL AND o.id <> :id)
RETURNING id
