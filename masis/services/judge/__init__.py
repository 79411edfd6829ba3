"""What a team tells its judge: versions of house rules, and what an audit gets of them."""
