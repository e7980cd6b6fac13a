-- Post what was decided, all or nothing, and append its events. Returns no number if the books have changed since the
-- decision.
SELECT post_entries(
    :seen_number, :now,
    :transfer_ids::text::uuid[], :debit_ids::text::uuid[], :credit_ids::text::uuid[], :amounts_uc::text::bigint[],
    :currencies::text::text[], :kinds::text::text[], :causes::text::text[], :hold_ids::text::uuid[],
    :unfloored_ids::text::uuid[],
    :placed_ids::text::uuid[], :placed_account_ids::text::uuid[], :placed_amounts_uc::text::bigint[],
    :placed_currencies::text::text[], :placed_until_us::text::bigint[], :placed_causes::text::text[],
    :release_ids::text::uuid[], :released_hold_ids::text::uuid[], :release_causes::text::text[],
    :refused_ids::text::uuid[], :refused_entries::text::jsonb[], :refusals::text::text[],
    :event_id, :event_kind, :event_subject, :event_body, :event_public
) AS number
