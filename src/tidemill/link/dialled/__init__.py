"""The agent's end of a link: the connection it opens, its session, and the spool behind it."""
