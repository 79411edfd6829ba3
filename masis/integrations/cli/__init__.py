"""The commands of the integrations."""
