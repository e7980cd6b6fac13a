"""The operating system under all our processes: private files, locks, children that end with their parent."""
