"""Commands about accounts: joining, logging in, keys, the second factor, and operators' view of them."""
