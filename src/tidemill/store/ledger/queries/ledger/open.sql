-- Open accounts. An open account stays as it is: its id follows from its fields.
SELECT open_accounts(:kinds::text[], :owner_ids::uuid[], :names::text[], :currencies::text[], :now) AS opened
