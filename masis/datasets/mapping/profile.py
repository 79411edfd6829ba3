"""Profiles: the paths of a row that hold the parts of a case.

A profile is a TOML file (built in, of another package, or a person's own), or is built from chosen
columns. Detection, ``--as``, the import page and the ingestion of requests all use
``import_profiles``.
"""

from __future__ import annotations

import hashlib
import json
import logging
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_core import PydanticCustomError

from masis.datasets.paths import path_error
from masis.errors import InputError
from masis.schema.base import Record
from masis.schema.case import ClaimVerdict
from masis.schema.columns import SourceColumn, evidence_columns, likely_columns, text_key
from masis.schema.reading import CHUNK_FIELDS, SPLIT, FieldMap
from masis.schema.registry import load_added

logger = logging.getLogger(__name__)

PROFILES_GROUP = "masis.profiles"
"""The group of entry points by which a package adds profiles."""

OWN_FORMAT = "cases"
"""The name of the workbench's own format: rows with query, answer and evidence."""


def _check_paths(paths: tuple[str, ...]) -> tuple[str, ...]:
    for path in paths:
        if (wrong := path_error(path)) is not None:
            raise PydanticCustomError("path", "{wrong}", {"wrong": wrong})
    return paths


Paths = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
    AfterValidator(_check_paths),
]
"""One path, or several of which the first with a value is used."""

MOST_PROFILE_BYTES = 256 * 1024

Converter = Literal["anthropic", "openai-responses", "openai-chat", "gemini", "cohere", "bedrock"]
"""The provider of the reply at ``reply``.

Answer, evidence and citations are read from such a reply together.
"""


_MAPPED_PATHS = ("id", "query", "answer", "evidence", "messages", "citations", "labels", "system")
"""Fields of a case that a profile has paths for."""

_ID_KEYS = ("chunk_id", "passage_id", "doc_id", "document_id", "source_id", "_id")
"""Other tools' names for the id of a chunk, which answers cite; the most specific first."""


class EvidencePaths(Record):
    """Paths inside one item of the evidence. An item that is text is used as the text."""

    id: Paths = ("id", *_ID_KEYS)
    text: Paths = ("text(@)",)
    source: Paths = ()


class Join(Record):
    """A second file beside the first.

    Its row with the same ``key`` is added to the row of the first file under ``name``.
    """

    file: str = Field(pattern=r"^[\w.-]+$")
    key: str
    name: str


class RowGroup(Record):
    """Rows that belong to one case: those with equal ``by``, as a list under ``name``."""

    by: Paths
    name: str = "spans"


class Profile(Record):
    """The paths of one tool's format.

    Attributes:
        required: Paths that must have a value; a file is recognized by them.
        whole: Path to a whole case in the workbench's own format, which is used unchanged.
        evidence_ids: The ids of an evidence that is plain texts, in the same order.
        evidence_sources: The sources of such an evidence, in the same order.
        citations: Objects with ``start`` and ``end`` in the answer, ``evidence_id`` and optionally
            a ``quote``.
        labels: Objects with ``text``, ``verdict`` and optionally a ``note``.
        words: The meaning of each verdict in ``labels``.
        drafted: Whether answers are absent on purpose, because an audit drafts them.
        reasoning: Path to the model's thoughts before it answered.
        system: Path to the name of the system that answered. Empty in formats of requests, which
            have the system prompt under the key ``system``.
        left_out: What the rows have that an import of cases leaves out; a note says so once.
        left_out_hint: How to import that.

    """

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    title: str
    required: Paths = ()
    absent: Paths = ()
    rows: Paths = ()
    group: RowGroup | None = None
    join: Join | None = None
    id: Paths = ()
    query: Paths = ()
    answer: Paths = ()
    reference: Paths = ()
    evidence: Paths = ()
    evidence_ids: Paths = ()
    evidence_sources: Paths = ()
    messages: Paths = ()
    reasoning: Paths = ()
    system: Paths = ("system",)
    whole: Paths = ()
    chunk: EvidencePaths = EvidencePaths()
    citations: Paths = ()
    labels: Paths = ()
    words: dict[str, ClaimVerdict] = Field(default_factory=dict)
    external: dict[str, Paths] = Field(default_factory=dict)
    reply: Paths = ()
    converter: Converter | None = None
    drafted: bool = False
    left_out: str = ""
    left_out_hint: str = ""

    def with_map(self, names: FieldMap) -> Profile:
        """Return the profile with the fields of a map read from the mapped keys instead.

        Outside the evidence, a map moves each value to the name of its field before the paths are
        followed.
        """
        if self.is_own:
            return self
        mapped = {field: key for field, key in names.items() if key and field != SPLIT}
        fields: dict[str, tuple[str, ...]] = {
            field: (json.dumps(field),) for field in mapped if field in _MAPPED_PATHS
        }
        inside: dict[str, tuple[str, ...]] = {
            field.partition(".")[2]: (json.dumps(field.partition(".")[2]),)
            for field in mapped
            if field in CHUNK_FIELDS and "evidence" in mapped
        }
        inside |= {
            field.partition(".")[2]: (json.dumps(key), ".".join(map(json.dumps, key.split("."))))
            for field, key in mapped.items()
            if field in CHUNK_FIELDS and "evidence" not in mapped
        }
        chunk = self.chunk.model_copy(update=inside)
        return self.model_copy(update={**fields, "chunk": chunk}) if mapped else self

    @property
    def is_own(self) -> bool:
        """Whether it is the workbench's own format."""
        return self.whole == ("@",)


def load_profile(path: Path) -> Profile:
    """Load a person's own profile from a TOML file.

    Raises:
        InputError: The file isn't a valid profile; the error names the field.

    """
    try:
        with path.open("rb") as stream:
            content = stream.read(MOST_PROFILE_BYTES + 1)
        if len(content) > MOST_PROFILE_BYTES:
            raise InputError("is too large for a profile", hint="Name a TOML file of paths.")
        return parse_profile(content, path.stem)
    except OSError as error:
        raise InputError(
            f"can't be read ({error.strerror})", hint="Check the name.", file=str(path)
        ) from error
    except InputError as error:
        raise error.at(file=str(path)) from error


def parse_profile(content: bytes, name: str = "own") -> Profile:
    """Return the profile in a TOML text; ``name`` is used if it has none.

    Raises:
        InputError: The text isn't a valid profile.

    """
    try:
        data = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"isn't valid TOML ({error})", hint="See docs/files.md.") from error
    plain = "".join(
        char if char.isascii() and char.isalnum() else "-" for char in name.lower()
    ).strip("-")
    try:
        return Profile.model_validate({"name": plain or "own", "title": name, **data})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"] if isinstance(part, str))
        if first["type"] == "path":
            hint = (
                "Write paths like inputs.question, docs[].text or"
                ' observations[?type==`"RETRIEVER"`].output[].'
            )
            raise InputError(
                f"isn't a valid path ({first['msg']})", hint=hint, field=field
            ) from error
        hint = (
            f"There are: {', '.join(Profile.model_fields)}."
            if first["type"] == "extra_forbidden"
            else "Correct it."
        )
        raise InputError(
            f"isn't part of a profile ({first['msg']})", hint=hint, field=field
        ) from error


@cache
def import_profiles() -> dict[str, Profile]:
    """Return every profile by its name. The project's own come first and win.

    Another package adds profiles by an entry point of the group ``masis.profiles``, which names a
    package with TOML files (``docs/extending.md``).
    """
    profiles = _profiles_in("masis.datasets.mapping.profiles")
    for package in load_added(PROFILES_GROUP, ModuleType).values():
        try:
            added = _profiles_in(package.__name__)
        except InputError as error:
            logger.warning("%s: %s: %s", PROFILES_GROUP, package.__name__, error)
        else:
            profiles |= {name: added[name] for name in added if name not in profiles}
    return profiles


def _profiles_in(package: str) -> dict[str, Profile]:
    files = {
        file.name.removesuffix(".toml"): file
        for file in resources.files(package).iterdir()
        if file.name.endswith(".toml")
    }
    return {name: parse_profile(files[name].read_bytes(), name) for name in sorted(files)}


# Profiles built from chosen columns. A column is named by its readable path, ``inputs.question``.
# The JMESPath expression quotes each name, so a name may contain any character.


_SINGLE_COLUMN_FIELDS = ("query", "answer", "id", "reference", "system")
"""Fields that are read from one column."""


class ColumnChoice(Record):
    """The column of each field, by the names of ``SourceColumn.shown``; "" if there is none."""

    query: str = ""
    answer: str = ""
    evidence: tuple[str, ...] = ()
    chunk_text: str = ""
    chunk_id: str = ""
    id: str = ""
    reference: str = ""
    system: str = ""

    @property
    def complete(self) -> bool:
        """Whether cases can be read with it."""
        return bool(self.query and self.evidence)

    def unused_columns(self, columns: Iterable[SourceColumn]) -> list[str]:
        """Return the names of the columns that hold no field."""
        used = {*self.evidence, *(getattr(self, field) for field in _SINGLE_COLUMN_FIELDS)}
        return [column.shown for column in columns if column.shown not in used]


def columns_key(row: Mapping[str, Any]) -> str:
    """Return a key for the set of a row's columns, independent of their order.

    A person's choice is remembered under it.
    """
    return hashlib.sha256(
        json.dumps(sorted(map(str, row))).encode("utf-8", "surrogatepass")
    ).hexdigest()[:16]


def likely_choice(columns: Iterable[SourceColumn]) -> ColumnChoice:
    """Return the columns that probably hold each field, judged by name and then by content."""
    columns = list(columns)
    chosen = likely_columns(columns)
    evidence = chosen.get("evidence")
    shown = {field: chosen[field].shown for field in _SINGLE_COLUMN_FIELDS if field in chosen}
    return ColumnChoice(
        **shown,
        evidence=(
            tuple(column.shown for column in evidence_columns(chosen, columns))
            if evidence is not None
            else ()
        ),
        chunk_text=text_key(evidence) if evidence is not None else "",
        chunk_id=evidence.item_id if evidence is not None else "",
    )


def profile_text(profile: Profile) -> str:
    """Return a profile of chosen columns as a TOML file for ``--map``."""
    fields = profile.model_dump(exclude_defaults=True, exclude={"chunk", "name"})
    chunk = profile.chunk.model_dump(exclude_defaults=True)
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items()]
    inside = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in chunk.items()]
    return "\n".join([*lines, *(["", "[chunk]", *inside] if inside else [])]) + "\n"


def drop_missing_columns(choice: ColumnChoice, columns: Iterable[SourceColumn]) -> ColumnChoice:
    """Return a choice without the columns that a row doesn't have."""
    known = {column.shown: column for column in columns}
    evidence = tuple(name for name in choice.evidence if name in known)
    inside = {name for shown in evidence for name in known[shown].items}
    offered = {
        **{name: {*known} for name in _SINGLE_COLUMN_FIELDS},
        "chunk_text": inside,
        "chunk_id": inside,
    }
    missing = {name: "" for name, names in offered.items() if getattr(choice, name) not in names}
    return choice.model_copy(update={**missing, "evidence": evidence})


def profile_of(choice: ColumnChoice, columns: Iterable[SourceColumn]) -> Profile:
    """Return the profile that reads rows as chosen; unknown columns are left out."""
    known = {column.shown: column.path for column in columns}
    paths = {name: getattr(choice, name) for name in _SINGLE_COLUMN_FIELDS}
    fields: dict[str, tuple[str, ...]] = {
        name: (known[shown],) for name, shown in paths.items() if shown in known
    }
    evidence = tuple(known[shown] for shown in choice.evidence if shown in known)
    if len(evidence) > 1:  # all columns in this order, without empty cells
        evidence = (f"[{', '.join(f'parsed({path})' for path in evidence)}][] | [?@ != '']",)
    # A column "system" that a person didn't choose names no system.
    if "system" in known and not choice.system:
        fields["system"] = ()
    default = EvidencePaths()
    chunk = EvidencePaths(
        id=(json.dumps(choice.chunk_id),) if choice.chunk_id else default.id,
        text=(json.dumps(choice.chunk_text),) if choice.chunk_text else default.text,
        source=("source", "url"),
    )
    return Profile(
        name="columns",
        title="Columns as chosen",
        **fields,
        evidence=evidence,
        chunk=chunk,
        drafted=not choice.answer,
    )
