-- Delete call-offs for nodes that never came back.
DELETE FROM call_off WHERE at < :until
