"""Days of a pool in minutes: production's life cycles and policies under virtual time."""
