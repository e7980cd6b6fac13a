-- Until the transaction ends, find rows by their keys. The planner does not know how small a batch is, and would read
-- whole tables, which grow.
SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
       set_config('enable_seqscan', 'off', true)
