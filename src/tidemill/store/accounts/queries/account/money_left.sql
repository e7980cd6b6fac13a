-- Whether an account still has or owes money, in any account of the ledger it owns.
SELECT EXISTS (SELECT FROM ledger_account WHERE owner_id = :id AND (posted_uc <> 0 OR held_uc <> 0)) AS money_left
