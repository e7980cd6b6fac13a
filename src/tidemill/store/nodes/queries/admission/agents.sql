-- Write the agents' versions, and which of them were reported as too old. Only changes are written. Rows are locked
-- ordered by id, as everywhere, to avoid deadlocks.
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
