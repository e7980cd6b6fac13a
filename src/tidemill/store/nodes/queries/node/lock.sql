-- Lock a node: whoever decides on its state waits for whoever is deciding.
SELECT id FROM node WHERE id = :id FOR NO KEY UPDATE
