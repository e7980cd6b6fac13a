"""Programs that run inside a sandbox, one a kind of task. They need the standard library, numpy and `core.matrices`.

Start-up is paid by every task, so nothing heavy is imported here, nor by the packages above.
"""
