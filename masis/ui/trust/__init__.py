"""The trust page: how far you can rely on the audit."""
