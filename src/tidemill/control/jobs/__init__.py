"""Jobs: ordered, quoted, confirmed, followed; and what nodes report about attempts."""
