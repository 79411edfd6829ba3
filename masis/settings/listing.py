"""All settings as rows: what page, command line and JSON show of them. Nothing secret is in a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from masis.settings.aliases import TABLES_OF_TABLES, Name, written
from masis.settings.docs import GROUPS, INSIDE, Group, SettingDoc
from masis.settings.fields import Settings
from masis.settings.loading import Loaded
from masis.settings.origins import Origin
from masis.settings.ranges import described, schema_of, spelled
from masis.settings.secrecy import without_secrets

NOBODY = Origin("default")


class Row(NamedTuple):
    """One setting, or one value inside of a table such as ``providers.vllm.address``.

    ``value`` and ``default`` are JSON-ready; ``default`` is None inside of tables, which have none.
    """

    path: Name
    value: Any
    default: Any
    changed: bool
    origin: Origin
    doc: SettingDoc

    @property
    def name(self) -> str:
        """The name as it is written in the file."""
        return written(self.path)

    @property
    def allowed(self) -> str:
        """What the value may be, in words."""
        return described(schema_of(self.path))

    @property
    def spelled(self) -> str:
        """The value as people read it."""
        return spelled(self.value)


def rows(loaded: Loaded, group: Group) -> tuple[Row, ...]:
    """The settings of a group, each followed by what is inside of it where it is a table."""
    return tuple(row for name in group.settings for row in _rows(loaded, name, group))


def all_rows(loaded: Loaded) -> tuple[Row, ...]:
    """The rows of all groups."""
    return tuple(row for group in GROUPS for row in rows(loaded, group))


def _rows(loaded: Loaded, name: str, group: Group) -> Iterator[Row]:
    value, default = (getattr(settings, name) for settings in (loaded.settings, _DEFAULT))
    doc = group.settings[name]
    yield Row((name,), _plain(value), _plain(default), value != default, loaded.origins.get(name, NOBODY), doc)
    if name in TABLES_OF_TABLES:
        for path, inside in _inside((name,), loaded.settings.model_dump(mode="json", exclude_none=True)[name]):
            origin = loaded.inside.get(path, NOBODY)
            meaning = INSIDE.get(name, {}).get(path[-1], "")
            yield Row(path, _plain(inside), None, True, origin, SettingDoc(meaning, doc.source))


def _inside(path: Name, tree: Mapping[str, Any]) -> Iterator[tuple[Name, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _inside((*path, key), value)
        else:
            yield (*path, key), value


def _plain(value: Any) -> Any:
    """The value as JSON has it, of tables their names, of texts nothing secret."""
    if isinstance(value, Mapping):
        return list(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return without_secrets(value) if isinstance(value, str) else value


_DEFAULT = Settings()
