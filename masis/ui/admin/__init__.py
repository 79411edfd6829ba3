"""Health, retention and settings pages."""
