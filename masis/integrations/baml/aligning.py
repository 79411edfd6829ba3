"""Whether a record that BAML aligned to a form says the same as the text: names and lists may differ, values not."""

from __future__ import annotations

import re
from typing import Any

from masis.llm.as_written import NotAsWritten

_JOINERS = re.compile(r"[\s_\-]+")


def aligned_as_written(aligned: Any, written: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The aligned record with the values as they were written, and what the alignment changed. Raises NotAsWritten."""
    repairs: list[str] = []
    made = _same(aligned, written, repairs)
    if not isinstance(made, dict):
        raise NotAsWritten("BAML aligns no object")
    return made, tuple(dict.fromkeys(repairs))


def _same(aligned: Any, written: Any, repairs: list[str]) -> Any:
    if isinstance(aligned, dict) and isinstance(written, dict):
        return _same_fields(aligned, written, repairs)
    if isinstance(aligned, list):
        if not isinstance(written, list):
            repairs.append("one value in place of a list")
            written = [written]
        if len(aligned) != len(written):
            raise NotAsWritten("a list has lost or gained something")
        return [_same(one, other, repairs) for one, other in zip(aligned, written, strict=True)]
    if aligned is None or isinstance(aligned, bool) or isinstance(written, bool) or written is None:
        if aligned is written or (isinstance(aligned, bool) and str(aligned).lower() == str(written).strip().lower()):
            return aligned
        raise NotAsWritten("a value differs from what is written")
    if aligned == written:
        return written
    if isinstance(aligned, int | float) and isinstance(written, str) and _number(written) == aligned:
        repairs.append("a number in quotes")
        return aligned
    raise NotAsWritten("a value differs from what is written")


def _same_fields(aligned: dict[str, Any], written: dict[str, Any], repairs: list[str]) -> dict[str, Any]:
    """Each field under its right name; one that is not written is not filled in."""
    known: dict[str, str] = {}
    for name in written:
        if known.setdefault(_plain(name), name) != name:
            raise NotAsWritten("two fields have the same name")
    made = {}
    for name, value in aligned.items():
        if (own := known.get(_plain(name))) is None:
            raise NotAsWritten("a field that is not written was filled in")
        if own != name:
            repairs.append("a name spelt otherwise")
        made[name] = _same(value, written[own], repairs)
    return made


def _plain(name: str) -> str:
    return _JOINERS.sub("", name).casefold()


def _number(text: str) -> float | None:
    try:
        return float(text.strip())
    except ValueError:
        return None
