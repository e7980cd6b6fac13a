-- What tasks demand.
SELECT id, body FROM demand WHERE id = ANY (:ids::uuid[])
