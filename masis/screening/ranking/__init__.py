"""Orders the abstracts that people still have to read, and proposes when to stop."""
