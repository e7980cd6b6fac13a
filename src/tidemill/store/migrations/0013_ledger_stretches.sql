-- Statements are read by stretches of a million transfers. An index in the order of accounts alone has a page to change
-- for every account, which are too many for memory once there is a history; in the order of stretches only the pages of
-- the newest stretch change, and the rest is read when somebody asks. A search for one account skips from stretch to
-- stretch, which PostgreSQL can since version 18.
DROP INDEX transfer_debit;
DROP INDEX transfer_credit;
CREATE INDEX transfer_debit ON transfer (((number >> 20)::integer), debit_id, number);
CREATE INDEX transfer_credit ON transfer (((number >> 20)::integer), credit_id, number);
