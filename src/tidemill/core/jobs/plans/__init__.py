"""What follows from what happens to work, decided as plans: nothing here reads or writes."""
