"""Abstracts as JSON or rows of a table: ``{"id", "title", "text", "year"?, "journal"?, "authors"?, "doi"?, ...}``.

What other tools call the fields is understood (``abstract``, ``pub_year``); keys that are no field are kept. A record
without an id gets one from its PubMed id, its DOI or its title.
"""

from __future__ import annotations

import re
from typing import Any

from masis.errors import InputError
from masis.schema.explain import kind_of
from masis.schema.screening import Abstract
from masis.screening.sources.publication import RETRACTED_TYPE
from masis.screening.sources.records import abstract_of, validate_abstract, year_of

_ALSO_CALLED = {
    "text": ("abstract", "abstract_text", "summary"),
    "title": ("article_title", "name", "primary_title"),
    "year": ("pub_year", "publication_year", "published_year", "pub_date", "date"),
    "journal": ("journal_title", "venue", "source_title", "journal_book"),
    "authors": ("author",),
    "pmid": ("pubmed_id",),
    "url": ("link", "urls"),
    "keywords": ("keyword", "author_keywords", "mesh_terms"),
    "publication_types": ("publication_type", "pub_types", "pubtype", "document_type", "article_type", "type_of_work"),
}
_TEXTS = frozenset({"id", "title", "text", "journal", "doi", "pmid", "url"})
_BETWEEN = {"authors": re.compile(r";|\|"), "keywords": re.compile(r"[;|]"), "publication_types": re.compile(r"[;|]")}


def read_fields(data: dict[str, Any], source: str) -> Abstract:
    """Return the fields of a record as an abstract, whatever they are called. Raises InputError naming one."""
    fields = _named(data)
    for name in _TEXTS & fields.keys():
        fields[name] = _text(fields[name], name)
    for name, between in _BETWEEN.items():
        if name in fields:
            fields[name] = _list(fields[name], name, between)
    if (given := fields.get("year")) is not None:
        if not isinstance(given, str | int) or isinstance(given, bool):
            raise InputError(f"is {kind_of(given)}, must be a year", cure='Write it as "year": 2019.', field="year")
        fields["year"] = year_of(str(given))
        if fields["year"] is None and given:  # "in press": the record is kept all the same
            fields["year_as_given"] = given
    title, text, doi, pmid, year = (str(fields.get(name) or "") for name in ("title", "text", "doi", "pmid", "year"))
    derived = abstract_of(title=title, text=text, doi=doi, pmid=pmid, year=year)
    stated = {key: value for key, value in fields.items() if value not in (None, "")}
    return validate_abstract({"id": derived.id, "source": source} | stated)


def _named(data: dict[str, Any]) -> dict[str, Any]:
    """Return the record with our names for its fields."""
    named = dict(data)
    for name, others in _ALSO_CALLED.items():
        found = next((other for other in others if other in named), None)
        if name not in named and found is not None:
            named[name] = named.pop(found)
    kind = named.get("type")  # of any program: kept under its name too
    if "publication_types" not in named and isinstance(kind, str):
        named["publication_types"] = kind
    if named.get("is_retracted") in (True, "true", "True"):
        named["publication_types"] = [RETRACTED_TYPE]
    return named


def _text(value: Any, name: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and name in ("id", "pmid"):
        return str(value)
    raise InputError(f"is {kind_of(value)}, must be text", cure="Put it in quotes.", field=name)


def _list(value: Any, name: str, between: re.Pattern[str]) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return [part.strip() for part in between.split(value) if part.strip()]
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return [item.strip() for item in value if item.strip()]
    raise InputError(f"is {kind_of(value)}, must be a list of texts", cure='Write it as ["...", "..."].', field=name)
