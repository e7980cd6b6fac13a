"""What stands around every route: the edge, the guard, limits, idempotency, problems and views."""
