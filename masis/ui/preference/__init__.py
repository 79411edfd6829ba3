"""The page Preference."""
