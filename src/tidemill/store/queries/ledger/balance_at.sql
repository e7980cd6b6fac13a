-- What was on an account at an instant. An id may be a little older or newer than its posting, so ids bound the search
-- and the instant of posting decides.
SELECT (coalesce((SELECT sum(amount_uc) FROM transfer
                  WHERE credit_id = :account_id AND id < :newest_id AND at <= :instant), 0)
      - coalesce((SELECT sum(amount_uc) FROM transfer
                  WHERE debit_id = :account_id AND id < :newest_id AND at <= :instant), 0))::bigint AS posted_uc
