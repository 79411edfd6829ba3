"""Reads files, data frames and rows as cases, in the workbench's own format or another tool's.

A profile names the paths of a format. ``profiles/*.toml`` are the built-in ones. A person's own
profile is a file in the same form (``docs/files.md``), or is built from columns chosen on the page.
"""
