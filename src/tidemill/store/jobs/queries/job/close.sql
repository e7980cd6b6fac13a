-- Close a job: it wants no more of its tasks. The caller has locked it.
UPDATE job SET closing = :closing WHERE id = :id
