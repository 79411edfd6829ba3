"""The pages of the evidence critic."""
