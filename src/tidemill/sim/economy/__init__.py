"""A pool's economy in virtual time: production's rules of trust and money, over populations that do not keep them."""
