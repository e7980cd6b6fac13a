"""The registry of nodes, their links, reports and challenges in the database."""
