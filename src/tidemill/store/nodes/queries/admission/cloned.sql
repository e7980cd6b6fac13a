-- Note that the owners of these nodes are told of a clone.
UPDATE node SET cloned_at = :now WHERE id = ANY (:ids::uuid[])
