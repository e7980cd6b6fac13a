"""Second executions: when, by whom, and whose answer is wrong."""
