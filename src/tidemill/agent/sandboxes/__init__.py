"""Where tasks run: isolation by what the machine has, behind one interface."""
