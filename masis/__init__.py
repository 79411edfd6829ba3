"""MASIS Workbench."""
