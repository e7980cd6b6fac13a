-- Store the same password hashed under today's rules, unless it was changed in the meantime.
UPDATE account SET password_hash = :password_hash WHERE id = :id AND password_hash = :old_hash
