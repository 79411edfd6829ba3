"""Putting abstracts into a corpus: each study once, each id once."""

from __future__ import annotations

import json
import sqlite3
from typing import Literal, NamedTuple

from pydantic_core import PydanticSerializationError

from masis.errors import InputError
from masis.schema.screening import Abstract
from masis.screening.duplicates import Marks, marks, sameness
from masis.store import corpus_search


class Prepared(NamedTuple):
    """An abstract ready to be put in: as JSON, and what it is known by."""

    abstract: Abstract
    payload: str
    marks: Marks


def prepared(abstract: Abstract) -> Prepared | InputError:
    """Make an abstract ready, outside a transaction."""
    try:
        payload = json.dumps(abstract.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)
    except (PydanticSerializationError, ValueError) as error:
        return InputError(
            f"abstract {abstract.id!r} holds what JSON can't ({error})", cure="Use text, numbers, lists and objects."
        )
    return Prepared(abstract, payload, marks(abstract))


def insert(connection: sqlite3.Connection, corpus: int, new: Prepared) -> Literal["added", "duplicate"] | InputError:
    """Put an abstract into a corpus unless the study is there; an InputError where another one has its id."""
    if _is_duplicate(connection, corpus, new.marks):
        return "duplicate"
    taken = connection.execute(
        "SELECT payload FROM corpus_abstracts WHERE corpus_seq = ? AND id = ?", [corpus, new.abstract.id]
    ).fetchone()
    if taken is not None:
        if taken[0] == new.payload:
            return "duplicate"
        return InputError(
            f"the corpus holds another abstract with the id {new.abstract.id!r} than {new.abstract.title[:60]!r}",
            cure="Give each abstract an id of its own, or import the file into a corpus of its own.",
            field="id",
        )
    insert_new(connection, corpus, new)
    return "added"


def insert_new(connection: sqlite3.Connection, corpus: int, new: Prepared) -> None:
    """Put an abstract and its words into a corpus that is known not to hold it."""
    known = new.marks
    cursor = connection.execute(
        """INSERT INTO corpus_abstracts (corpus_seq, id, doi, pmid, title_key, year, payload)
           VALUES (?, ?, ?, ?, ?, ?, ?)""",
        [corpus, new.abstract.id, known.doi, known.pmid, known.title, known.year, new.payload],
    )
    corpus_search.insert(
        connection,
        corpus,
        int(cursor.lastrowid or 0),
        title=new.abstract.title,
        text=new.abstract.text,
        keywords=new.abstract.keywords,
    )


def _is_duplicate(connection: sqlite3.Connection, corpus: int, new: Marks) -> bool:
    for column, value in (("doi", new.doi), ("pmid", new.pmid), ("title_key", new.title)):
        if value is None:
            continue
        rows = connection.execute(
            f"SELECT doi, pmid, title_key, year FROM corpus_abstracts WHERE corpus_seq = ? AND {column} = ? LIMIT 100",  # noqa: S608
            [corpus, value],
        )
        if any(sameness(new, Marks(*row)) for row in rows):
            return True
    return False
