"""The starting codebooks, one TOML file each. A team copies one into its own and changes that."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources

from masis.schema.base import Record
from masis.schema.codebook import Codebook


class StartingCodebook(Record):
    """A codebook to start from, with its title and what it is for."""

    title: str
    summary: str
    codebook: Codebook


@cache
def starting_codebooks() -> dict[str, StartingCodebook]:
    """Return the starting codebooks by their names, which are those of the files."""
    folder = resources.files("masis.services.modes") / "starting"
    books: dict[str, StartingCodebook] = {}
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        content = tomllib.loads(file.read_text(encoding="utf-8"))
        books[file.name.removesuffix(".toml")] = StartingCodebook(
            title=content["title"],
            summary=content["summary"],
            codebook=Codebook.model_validate(
                {"modes": content["mode"], "sources": content["source"]}
            ),
        )
    return books
