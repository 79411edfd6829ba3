"""The judge page: its steps, from choosing decided cases to adopting a version."""
