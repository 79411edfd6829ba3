"""The hooks of the core, and the two folders that use them.

``masis.screening`` and ``masis.integrations`` declare what they add in one table, the
``EXTENSION`` of their module ``extension``: pages, commands, jobs, checks and more. The core
imports nothing else from these folders and works without them. A table names objects as
``"module:name"``, which are imported on first use, so that reading the tables is quick.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

PACKAGES = ("masis.screening", "masis.integrations")
"""The folders that extend the core, if they are there."""


class AddedPage(NamedTuple):
    """A page of the workbench.

    ``file`` is its path in the folder of the package ``masis``, and ``setting`` names a setting
    that hides the page if it's off. ``menu`` is the menu that lists it, "" for the top row, and
    ``keys`` names the keys that only this page has (``masis.ui.shell.keys.Key``).
    """

    address: str
    title: str
    icon: str
    file: str
    menu: str = ""
    setting: str = ""
    keys: str = ""


class AddedCommand(NamedTuple):
    """A command under a heading of ``masis --help``: its object, and whether it's a group."""

    heading: str
    name: str
    target: str
    help: str
    is_group: bool = False


class ModelList(NamedTuple):
    """A setting that names models besides the roles of an audit, with commas between them.

    ``names`` is the function that returns the names from the settings or raises SettingsError.
    """

    setting: str
    role: str
    names: str


class Library(NamedTuple):
    """A library that Health looks for: its extra, and a module that imports it.

    ``setting`` names a setting that needs the library unless it's off. ``extra`` is empty if no
    extra of this package brings the library.
    """

    name: str
    extra: str
    library: str
    imports: str
    setting: str = ""


class RolePlugins(NamedTuple):
    """A registry of critics, revisers or verifiers under a name, as an entry point declares it."""

    group: str
    name: str
    target: str


class StoredTexts(NamedTuple):
    """Files in a folder that may contain texts of cases, with the nouns for one and for several."""

    one: str
    several: str
    folder: Path
    names: tuple[str, ...]


@dataclass(frozen=True)
class Extension:
    """What a folder adds to the core.

    Args:
        public_names: Names of ``masis`` itself, with the module of each.
        pages: Pages of the workbench. Each needs the permission to read.
        commands: Commands of ``masis``.
        use_cases: Classes whose methods are use cases (``masis.services.access.requires``).
        job_kinds: Kinds of jobs that workers run, each with its ``masis.services.jobs.JobKind``.
        model_lists: Settings that name models.
        notebook_views: Records that ``masis.html`` shows, by the name of their class, each with a
            function of the record.
        demo_data: Functions of a workbench and an actor that add what is missing in a demo's
            database.
        health_checks: Functions that return a ``HealthItem``.
        database_checks: Functions of a connection that yield the problems of a database.
        libraries: Libraries that Health looks for.
        telemetry: A module that sends telemetry (``masis.observers.telemetry.Sender``).
        audit_engines: Other ways to run ``masis audit``, by the name in ``--engine``, each with a
            function that has the parameters of ``masis.cli.audit.Engine``.
        role_plugins: Critics, revisers and verifiers (``masis.llm.role_plugins``): the group of
            entry points, the name, and the registry.
        model_files: Verifier models that can be downloaded (``masis.llm.model_files.ModelFiles``).
        kept_texts: Functions of the settings and a time that return ``StoredTexts``: files with
            texts of cases, outside of the database, from before that time.

    """

    public_names: Mapping[str, str] = field(default_factory=dict)
    pages: tuple[AddedPage, ...] = ()
    commands: tuple[AddedCommand, ...] = ()
    use_cases: tuple[str, ...] = ()
    job_kinds: Mapping[str, str] = field(default_factory=dict)
    model_lists: tuple[ModelList, ...] = ()
    notebook_views: Mapping[str, str] = field(default_factory=dict)
    demo_data: tuple[str, ...] = ()
    health_checks: tuple[str, ...] = ()
    database_checks: tuple[str, ...] = ()
    libraries: tuple[Library, ...] = ()
    telemetry: tuple[str, ...] = ()
    audit_engines: Mapping[str, str] = field(default_factory=dict)
    role_plugins: tuple[RolePlugins, ...] = ()
    model_files: tuple[str, ...] = ()
    kept_texts: tuple[str, ...] = ()


@cache
def extensions() -> tuple[Extension, ...]:
    """Return the tables of the folders that are there."""
    modules = (f"{package}.extension" for package in PACKAGES)
    return tuple(importlib.import_module(name).EXTENSION for name in modules if is_module(name))


def load(target: str) -> Any:
    """Import the object that a table names as ``"module:name"``, or a module by its name alone."""
    module, _, name = target.partition(":")
    imported = importlib.import_module(module)
    return getattr(imported, name) if name else imported


def load_all(hook: str) -> Iterator[Any]:
    """Import the objects of a hook that lists them (``health_checks``), in all tables."""
    for extension in extensions():
        yield from map(load, getattr(extension, hook))


def is_module(module: str) -> bool:
    """Return whether a module of this name can be found."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # find_spec imports the parent package, which isn't there.
        return False
