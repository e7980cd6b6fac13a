-- Open accounts. One that is open already stays as it is: its id follows from what it is.
SELECT open_accounts(:kinds::text[], :owner_ids::uuid[], :names::text[], :currencies::text[], :now) AS opened
