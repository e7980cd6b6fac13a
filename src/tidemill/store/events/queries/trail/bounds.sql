-- The numbers between which all acts of a time lie. Acts are in the order of their transactions, which is only nearly
-- the order of time, so some of another time may lie between them.
SELECT coalesce((SELECT min(number) FROM audit_trail WHERE at >= :since), 9223372036854775807) AS first,
       coalesce((SELECT max(number) FROM audit_trail WHERE at < :until), 0) AS last
