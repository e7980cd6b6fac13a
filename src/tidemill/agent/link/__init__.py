"""What an agent says to its pool and is told by it, over the link and over HTTP."""
