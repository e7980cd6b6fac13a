-- Write the devices of machines. For a device that stays, only what can change is written. The caller has locked the
-- rows of their nodes.
INSERT INTO device (node_id, index, kind, name, uuid, model, memory_mib, driver, cuda, power_limit_w, ecc, failing)
SELECT * FROM unnest(
    :owners::uuid[], :indexes::smallint[], :kinds::text[], :names::text[], :uuids::text[], :models::text[],
    :memories::bigint[], :drivers::text[], :cudas::text[], :power_limits::integer[], :eccs::boolean[],
    :failings::text[]
)
ON CONFLICT (node_id, index) DO UPDATE
SET model = excluded.model, driver = excluded.driver, cuda = excluded.cuda, power_limit_w = excluded.power_limit_w,
    ecc = excluded.ecc, failing = excluded.failing
