"""How a result is compared with evidence: one module a kind, whose `check(claim, evidence)` gives a verdict."""
