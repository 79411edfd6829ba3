"""How Sphinx builds the docs: ``make docs`` writes the site to ``build/docs``, and a warning is an error."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

_PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))["project"]

project = "MASIS Workbench"
version = release = _PROJECT["version"]
extensions = ["myst_parser"]
exclude_patterns = ["images"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"{project} {version}"
html_show_copyright = False
html_copy_source = False
highlight_language = "none"


def _name_files_of_the_repository(app: object, page: str, source: list[str]) -> None:
    """Name what lies outside of the docs instead of linking to it: the site doesn't hold it."""
    source[0] = re.sub(r"\[[^\]]+\]\(\.\./([^)\s]+)\)", r"`\1`", source[0])


def setup(app: Any) -> None:
    """Register what is done to each page before it is read."""
    app.connect("source-read", _name_files_of_the_repository)
