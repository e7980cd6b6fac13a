-- What the program's role may do: all of it, in one place, in the order of the migrations. Applied after every migration
-- and restore. Only what is written here is allowed; no table that keeps a record can be updated or emptied by the program.

REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC, {program};
REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM PUBLIC, {program};
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC, {program};
REVOKE CREATE ON SCHEMA public FROM PUBLIC, {program};

-- Foundation
GRANT USAGE ON SCHEMA public TO {program};
GRANT SELECT ON migration, pool, partitioned_table TO {program};
GRANT UPDATE (set_up_at, set_up_sha256, demonstration) ON pool TO {program};
GRANT EXECUTE ON FUNCTION first_id_at, create_partitions, drop_days TO {program};

-- Events
GRANT SELECT, INSERT (id, generation, at, kind, subject, body, public, audited, accounts) ON event TO {program};
GRANT USAGE ON SEQUENCE event_number TO {program};
GRANT SELECT, INSERT ON audit_trail TO {program};

-- Operations
GRANT SELECT, INSERT, UPDATE, DELETE ON process TO {program};
GRANT SELECT, INSERT, UPDATE ON duty, switch TO {program};
GRANT SELECT ON critical_setting TO {program};
GRANT SELECT, UPDATE (state, decided_by, decided_at, reason, vouched_by) ON critical_change TO {program};
GRANT SELECT, INSERT, UPDATE, DELETE ON answer, quota TO {program};

-- Secrets
GRANT SELECT, INSERT (id, wrapped, master_id, made_at) ON data_key TO {program};
GRANT EXECUTE ON FUNCTION data_key_of TO {program};

-- Accounts
GRANT SELECT, INSERT, UPDATE ON account, api_key TO {program};
GRANT SELECT, INSERT, UPDATE, DELETE ON mailed_token, account_totp, recovery_code, session, refresh_token TO {program};
GRANT SELECT, INSERT, DELETE ON signing_key, login_attempt TO {program};

-- Ledger
GRANT SELECT ON ledger_account, transfer, hold, hold_release, refused_entry TO {program};
GRANT SELECT ON ledger_checkpoint, ledger_archive, archived_entries TO {program};
GRANT SELECT, INSERT (id, debit_id, credit_id, amount_uc, currency, reason, proposed_by, proposed_at)
    ON adjustment TO {program};
GRANT EXECUTE ON FUNCTION open_accounts, lock_ledger, set_frozen, settle_adjustment, post_entries, posted_until,
    write_checkpoints TO {program};

-- Notices
GRANT SELECT, INSERT (id, recipient, kind, language, parameters, made_at, state, tries, next_at, tried_since, last_error),
    UPDATE (parameters, state, tries, next_at, tried_since, lease_token, leased_until, sent_at, last_error), DELETE
    ON mail TO {program};

-- Nodes
GRANT SELECT, INSERT ON pool_identity TO {program};
GRANT SELECT, INSERT (id, account_id, name, sha256, house, labels, uses_max, made_at, expires_at),
    UPDATE (uses, revoked_at, letter_at), DELETE ON join_token TO {program};
GRANT SELECT, INSERT (id, account_id, key, join_token_id, name, house, life, agent, refused_agent, rules, joined_at),
    UPDATE (name, life, agent, refused_agent, cloned_at, machine, measured_cores, measured_mib, carries, rules,
            utc_offset_s, suspended_reason, wishes, removed_at, removed_reason)
    ON node TO {program};
GRANT SELECT, INSERT, UPDATE, DELETE ON device TO {program};
GRANT SELECT, INSERT, UPDATE ON presence TO {program};
GRANT SELECT, UPDATE ON listening TO {program};
GRANT SELECT, INSERT, UPDATE, DELETE ON node_alert TO {program};
GRANT SELECT, INSERT ON telemetry TO {program};
GRANT SELECT, INSERT, DELETE ON node_cache TO {program};

-- Challenges
GRANT SELECT, INSERT, UPDATE ON node_challenge TO {program};
GRANT SELECT, INSERT, UPDATE, DELETE ON challenge_round, challenge, challenge_answer TO {program};

-- Artefacts
GRANT SELECT, INSERT, UPDATE (used_bytes, reserved_bytes, charged_at, unpaid_since) ON artefact_usage TO {program};
GRANT SELECT, INSERT, UPDATE (refers, idle_since, left_by), DELETE ON artefact_content TO {program};
GRANT SELECT, INSERT, UPDATE (name), DELETE ON artefact TO {program};  -- a role needs UPDATE to lock rows
GRANT SELECT, INSERT, UPDATE (expires_at, artefact_id), DELETE ON upload TO {program};
GRANT SELECT, INSERT, UPDATE, DELETE ON artefact_grant TO {program};
GRANT SELECT, INSERT, DELETE ON artefact_use TO {program};

-- Models
GRANT SELECT, INSERT, DELETE ON model TO {program};

-- Jobs
GRANT SELECT, INSERT, UPDATE (state, closing, quote, quote_expires_at, budget_uc, hold_id, tasks, completed, failed,
            cancelled, spent_uc, confirmed_at, deadline_at, ended_at)
    ON job TO {program};
GRANT EXECUTE ON FUNCTION forget_unconfirmed_jobs TO {program};
GRANT SELECT, INSERT, UPDATE (used_at), DELETE ON demand TO {program};
GRANT SELECT, INSERT, UPDATE (ended, attempt_id, ended_at) ON task TO {program};
GRANT SELECT, INSERT, UPDATE, DELETE ON task_queue, lease, call_off TO {program};
GRANT USAGE ON SEQUENCE lease_number TO {program};
GRANT SELECT, INSERT, UPDATE (state, verdict, reason, paid_uc, transfer_id, batch_id, place, ended_at)
    ON attempt TO {program};
GRANT SELECT, INSERT ON receipt_batch TO {program};
GRANT SELECT, INSERT ON attempt_log TO {program};
GRANT USAGE ON SEQUENCE attempt_log_number TO {program};

-- Placement
GRANT SELECT, INSERT, DELETE ON explanation TO {program};
GRANT SELECT, INSERT, UPDATE, DELETE ON waiting_for TO {program};

-- Trust
GRANT SELECT, INSERT, UPDATE (
    task_id, found, first_found, verdict, begun_at, ended_at, judged_at, asked_at, doubt, decided, decided_by, decided_for
) ON audit TO {program};
GRANT SELECT, INSERT ON verification_key TO {program};
GRANT SELECT, INSERT, UPDATE (verified, late, crashed, broke_its_word, wrong) ON owner_record TO {program};
