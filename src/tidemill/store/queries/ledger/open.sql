-- Open accounts. One that is open already stays as it is: its id follows from what it is.
SELECT open_accounts(
    :ids::uuid[], :kinds::text[], :owner_ids::uuid[], :names::text[], :currencies::text[], :floors::boolean[], :now
) AS opened
