-- Store the draw of challenges that the caller has locked, and have their nodes told.
WITH drawn AS (
    UPDATE challenge AS c SET state = 'drawn', draw = d.draw
    FROM unnest(:ids::uuid[], :draws::bytea[]) AS d (id, draw) WHERE c.id = d.id
    RETURNING c.node_id
)
UPDATE node SET wishes = wishes + 1 WHERE id IN (SELECT node_id FROM drawn)
