"""What a profile says: which paths of a row hold the parts of a case. Data only: TOML, built in or a person's own."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_core import PydanticCustomError

from masis.datasets.paths import path_error
from masis.errors import InputError
from masis.schema.base import Record
from masis.schema.case import ClaimVerdict

OWN_FORMAT = "cases"
"""The name of the workbench's own format: rows with query, answer and evidence."""


def _checked(paths: tuple[str, ...]) -> tuple[str, ...]:
    for path in paths:
        if (wrong := path_error(path)) is not None:
            raise PydanticCustomError("path", "{wrong}", {"wrong": wrong})
    return paths


Paths = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
    AfterValidator(_checked),
]
"""One path, or several of which the first that gives something counts."""

MOST_PROFILE_BYTES = 256 * 1024

Converter = Literal["anthropic", "openai-responses", "openai-chat", "gemini", "cohere", "bedrock"]
"""Whose reply ``reply`` points at: answer, evidence and citations are read from it together."""


_ID_KEYS = ("chunk_id", "passage_id", "doc_id", "document_id", "source_id", "_id")
"""What tools call the id of a chunk, which answers cite: the narrowest first."""


class EvidencePaths(Record):
    """Paths inside one item of the evidence; an item that is text is the text."""

    id: Paths = ("id", *_ID_KEYS)
    text: Paths = ("text(@)",)
    source: Paths = ()


class ClaimLabelPaths(Record):
    """Where labels of stretches of the answer lie, and what their words mean."""

    items: Paths
    text: Paths = ("text",)
    verdict: Paths = ()
    words: dict[str, ClaimVerdict] = Field(default_factory=dict)
    note: Paths = ()


class Join(Record):
    """A second file beside the first; its row with the same ``key`` stands under ``name`` in the first one's."""

    file: str = Field(pattern=r"^[\w.-]+$")
    key: str
    name: str


class Group(Record):
    """Rows that belong to one case: those alike in ``by``, as a list under ``name``."""

    by: Paths
    name: str = "spans"


class Profile(Record):
    """One tool's file as cases. ``required`` are paths that must give something; by them a file is recognised.

    ``whole`` leads to a whole case in the workbench's own format, which is taken as it is. ``evidence_ids`` and
    ``evidence_sources`` are the ids and sources of an evidence that is plain texts, in the same order. ``citations``
    are objects with ``start`` and ``end`` in the answer, ``evidence_id`` and perhaps a ``quote``. ``drafted`` says that
    answers are absent on purpose: an audit drafts them.
    """

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    title: str
    required: Paths = ()
    absent: Paths = ()
    rows: Paths = ()
    group: Group | None = None
    join: Join | None = None
    id: Paths = ()
    query: Paths = ()
    answer: Paths = ()
    reference: Paths = ()
    evidence: Paths = ()
    evidence_ids: Paths = ()
    evidence_sources: Paths = ()
    messages: Paths = ()
    whole: Paths = ()
    chunk: EvidencePaths = EvidencePaths()
    citations: Paths = ()
    labels: ClaimLabelPaths | None = None
    external: dict[str, Paths] = Field(default_factory=dict)
    reply: Paths = ()
    converter: Converter | None = None
    drafted: bool = False

    @property
    def is_own(self) -> bool:
        """Whether it is the workbench's own format."""
        return self.whole == ("@",)


def load_profile(path: Path) -> Profile:
    """Read a person's own profile. Raises InputError that names the field and the cure."""
    try:
        with path.open("rb") as stream:
            content = stream.read(MOST_PROFILE_BYTES + 1)
    except OSError as error:
        raise InputError(f"can't be read ({error.strerror})", cure="Check the name.", file=str(path)) from error
    if len(content) > MOST_PROFILE_BYTES:
        raise InputError("is too large for a profile", cure="Name a TOML file of paths.", file=str(path))
    try:
        return parse_profile(content, path.stem)
    except InputError as error:
        raise error.at(file=str(path)) from error


def parse_profile(content: bytes, name: str = "own") -> Profile:
    """Return the profile that a TOML text holds; ``name`` where it has none. Raises InputError."""
    try:
        data = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is no TOML that can be read ({error})", cure="See docs/files.md.") from error
    plain = "".join(char if char.isascii() and char.isalnum() else "-" for char in name.lower()).strip("-")
    try:
        return Profile.model_validate({"name": plain or "own", "title": name, **data})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"] if isinstance(part, str))
        if first["type"] == "path":
            cure = 'Write paths like inputs.question, docs[].text or observations[?type==`"RETRIEVER"`].output[].'
            raise InputError(f"is no path that can be read ({first['msg']})", cure=cure, field=field) from error
        cure = f"There are: {', '.join(Profile.model_fields)}." if first["type"] == "extra_forbidden" else "Correct it."
        raise InputError(f"is no part of a profile ({first['msg']})", cure=cure, field=field) from error


@cache
def builtin() -> dict[str, Profile]:
    """Return the built-in profiles by name."""
    folder = resources.files("masis.datasets.mapping") / "profiles"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name)
    read = [parse_profile(file.read_bytes(), file.name.removesuffix(".toml")) for file in files]
    return {profile.name: profile for profile in read}


def builtin_names() -> tuple[str, ...]:
    """Return the names that ``--as`` takes."""
    return tuple(builtin())
