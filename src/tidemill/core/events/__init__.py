"""Events, their order, and the audit trail made of them."""
