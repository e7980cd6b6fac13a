-- Which of these nodes were removed. The others, whose links count no more, have a newer link.
SELECT id FROM node WHERE id = ANY(:node_ids::uuid[]) AND life = 'deregistered'
