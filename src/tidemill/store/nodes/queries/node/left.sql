-- Whether an account still has nodes.
SELECT EXISTS (SELECT FROM node WHERE account_id = :account_id AND removed_at IS NULL) AS nodes_left
