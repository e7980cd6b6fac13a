"""Programs that run inside a sandbox, one a kind of task. They need the standard library, numpy and `core.matrices`.

Every task pays for start-up, so nothing heavy is imported here, nor by the packages above.
"""
