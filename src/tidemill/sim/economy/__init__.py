"""A pool's economy in virtual time: production's rules of trust and money, with populations that break them."""
