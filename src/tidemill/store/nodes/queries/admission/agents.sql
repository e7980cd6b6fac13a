-- What the agents of nodes are, and of which it was told that they are too old. Only what changed is written, and rows
-- are locked in the order of their ids, as everybody does who locks many.
UPDATE node AS n SET agent = changed.agent, refused_agent = changed.refused_agent
FROM (
    SELECT n.id, u.agent, coalesce(u.refused_agent, n.refused_agent) AS refused_agent
    FROM unnest(:ids::uuid[], :agents::text[], :refused_agents::text[]) AS u (id, agent, refused_agent)
    JOIN node AS n ON n.id = u.id
    WHERE n.agent <> u.agent OR n.refused_agent IS DISTINCT FROM coalesce(u.refused_agent, n.refused_agent)
    ORDER BY n.id
    FOR NO KEY UPDATE OF n
) AS changed
WHERE n.id = changed.id
