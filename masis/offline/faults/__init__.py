"""Certain faults put into sound answers: what the changes are, and when they are certain."""
