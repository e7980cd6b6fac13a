-- Lock a node, so that decisions about its state happen one after the other.
SELECT id FROM node WHERE id = :id FOR NO KEY UPDATE
