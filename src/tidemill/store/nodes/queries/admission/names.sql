-- The names of an account's nodes. A newcomer's token is locked, so two machines of one token never get one name; two that
-- join at once with two tokens of one name may, and are told apart by their ids.
SELECT name FROM node WHERE account_id = :owner_id AND removed_at IS NULL
