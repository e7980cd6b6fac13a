-- The numbers that enclose all acts of a period. Acts are in the order of their transactions, which differs a little
-- from the order of time, so acts of other times may lie between them.
SELECT coalesce((SELECT min(number) FROM audit_trail WHERE at >= :since), 9223372036854775807) AS first,
       coalesce((SELECT max(number) FROM audit_trail WHERE at < :until), 0) AS last
