"""Everything that all pages share: frame, address, keys, database, reviewer and forms."""
