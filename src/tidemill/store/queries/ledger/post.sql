-- Post what was decided, all or nothing. The ledger's lock is held, so the books are as the decision saw them.
SELECT post_entries(
    :now,
    :transfer_ids::uuid[], :debit_ids::uuid[], :credit_ids::uuid[], :amounts_uc::bigint[], :currencies::text[],
    :kinds::text[], :causes::text[], :hold_ids::uuid[],
    :placed_ids::uuid[], :placed_account_ids::uuid[], :placed_amounts_uc::bigint[], :placed_currencies::text[],
    :placed_until::timestamptz[], :placed_causes::text[],
    :release_ids::uuid[], :released_hold_ids::uuid[], :release_causes::text[]
)
