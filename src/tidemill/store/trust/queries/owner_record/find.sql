-- What an owner's attempts came to. Without a row, nothing was counted yet.
SELECT verified, late, crashed, broke_its_word, wrong FROM owner_record WHERE owner_id = :owner_id
