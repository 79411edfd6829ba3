"""The page that compares systems."""
