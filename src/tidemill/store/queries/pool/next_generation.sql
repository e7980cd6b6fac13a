-- Begin a new generation of events.
UPDATE pool SET generation = generation + 1
