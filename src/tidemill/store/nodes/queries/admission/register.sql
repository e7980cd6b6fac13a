-- Insert new nodes, ordered by key, so that no two batches deadlock. A key that another transaction registers at this
-- moment is left out: its caller is asked to come again.
INSERT INTO node (id, account_id, key, join_token_id, name, house, life, agent, refused_agent, rules, joined_at)
SELECT u.id, t.account_id, u.key, t.id, u.name, t.house, 'registered', u.agent, u.refused_agent, u.rules, :now
FROM unnest(:ids::uuid[], :keys::bytea[], :token_ids::uuid[], :names::text[], :agents::text[],
            :refused_agents::text[], :rules::jsonb[]) AS u (id, key, token_id, name, agent, refused_agent, rules)
JOIN join_token AS t ON t.id = u.token_id
ORDER BY u.key
ON CONFLICT (key) DO NOTHING
RETURNING id
