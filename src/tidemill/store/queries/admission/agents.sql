-- What the agents of nodes are, and of which it was told that they are too old. Only what changed is written.
UPDATE node AS n
SET agent = u.agent, refused_agent = coalesce(u.refused_agent, n.refused_agent)
FROM unnest(:ids::uuid[], :agents::text[], :refused_agents::text[]) AS u (id, agent, refused_agent)
WHERE n.id = u.id AND (n.agent <> u.agent OR n.refused_agent IS DISTINCT FROM coalesce(u.refused_agent, n.refused_agent))
