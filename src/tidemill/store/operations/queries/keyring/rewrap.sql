-- Wrap a data key with another master key, if it is still wrapped as it was read.
UPDATE data_key SET wrapped = :wrapped, master_id = :master_id WHERE id = :id AND wrapped = :was
