"""Simulate installed packages that add entries to the workbench."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from masis.datasets.exports.formats import export_formats
from masis.datasets.mapping.profile import import_profiles
from masis.schema.registry import added_entry_points


def write_package(folder: Path, entry_points: str, files: Mapping[str, str]) -> None:
    """Write a package's files, and its metadata as an installation would.

    ``entry_points`` is the text of ``entry_points.txt``: ``[group]`` and ``name = module:object``.
    """
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    metadata = folder / "its_package-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: its-package\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(entry_points, encoding="utf-8")


@contextmanager
def install_package(folder: Path, entry_points: str, files: Mapping[str, str]) -> Iterator[None]:
    """Install a package in this process, and remove it again at the end."""
    write_package(folder, entry_points, files)
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    _read_again()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in {file.partition("/")[0].partition(".")[0] for file in files} - before:
            sys.modules.pop(name, None)
        _read_again()


def _read_again() -> None:
    importlib.invalidate_caches()
    for registry in (added_entry_points, export_formats, import_profiles):
        registry.cache_clear()
