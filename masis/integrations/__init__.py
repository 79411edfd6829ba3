"""Integrations with other systems: each behind an extra, each calling the services, with no rule of its own
(docs/architecture.md). Importing ``masis`` imports none of them.
"""
