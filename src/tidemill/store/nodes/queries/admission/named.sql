-- Which of these nodes there are, whatever their keys.
SELECT id FROM node WHERE id = ANY (:ids::uuid[])
