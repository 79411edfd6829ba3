"""Checks that need no model: copies of the evidence, and figures and quotations that it lacks."""
