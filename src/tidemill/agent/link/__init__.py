"""How an agent and its pool talk, over the link and over HTTP."""
