"""The doors to other systems: each behind an extra of its own, each calling the use cases that stand, with no rule of
its own (docs/architecture.md). Importing ``masis`` imports none of them.
"""
