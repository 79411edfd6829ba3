"""Integrations with other systems.

Each is behind an extra and calls the services; none has rules of its own (docs/architecture.md).
Importing ``masis`` doesn't import any of them, and the core works without this folder.
"""
