"""Dataset versions: data sets frozen under a name, their contents, and a comparison of two."""

from __future__ import annotations

from masis.ui.datasets.page import show_datasets
from masis.ui.shell.frame import database_errors

with database_errors() as workbench:
    show_datasets(workbench)
