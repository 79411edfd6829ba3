"""Files, data frames and rows read as cases, in the workbench's own format or that of another tool.

A profile names the paths of a format; ``profiles/*.toml`` are the built-in ones, and a person's own
file has the same form (``docs/files.md``), or is made of columns that a person chooses.
"""
