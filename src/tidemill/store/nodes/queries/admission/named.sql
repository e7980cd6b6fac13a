-- Which of these nodes exist, whatever their keys.
SELECT id FROM node WHERE id = ANY (:ids::uuid[])
