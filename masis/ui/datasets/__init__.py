"""Dataset versions on a page."""
