-- Which of these nodes were removed. The others have a newer link, so theirs no longer count.
SELECT id FROM node WHERE id = ANY(:node_ids::uuid[]) AND life = 'deregistered'
