"""Rules that find where evidence contradicts a claim, one kind of conflict a file."""
