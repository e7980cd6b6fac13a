-- A data key wrapped by another master key, if it is still wrapped as it was read; else no row comes back.
UPDATE data_key SET wrapped = :wrapped, master_id = :master_id WHERE id = :id AND wrapped = :was RETURNING id
