"""Removing what is past its time, and the record of what was removed."""
