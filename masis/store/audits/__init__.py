"""Stores, searches and counts cases and runs."""
