"""What is recorded with every result (the versions of the application and of its rules), and where
its files lie.
"""

from pathlib import Path

APP = "0.2.0"
RUBRIC = "2"
"""Raised whenever a rule, a default constant or a mapping of the specs' rules changes."""


def app_root() -> Path:
    """Return the folder of ``app.py``, ``pages/`` and ``data/``: the checkout, or ``_app`` in the
    installed package.
    """
    package = Path(__file__).resolve().parent
    installed = package / "_app"
    return installed if installed.is_dir() else package.parent
