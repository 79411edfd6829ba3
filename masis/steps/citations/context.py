"""Tells citations from what only looks like one: years, intervals, indices, isotopes, checkboxes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from masis.steps.citations.references import Reference
from masis.steps.citations.resolution import EvidenceIndex

_NUMBERS_ONLY = re.compile(r"[\d\s,;–—-]+")
_INTERVAL_BEFORE = re.compile(
    r"(?:\b(?:CI|CrI|IQR)\b\)?|[∈=≈±]|"
    r"\b(?:in|within|from|over|on) (?:the |a )?(?:\w+ )?(?:interval|range|scale|domain)|"
    r"\b(?:range|scale|interval)(?: of|:))\s*(?:of|from|was|is)?\s*[:=,]?\s*\Z"
)
_STATISTIC_BEFORE = re.compile(r"\b(?:median|mean|average|IQR|range|versus|vs)\b[^.;!?]{0,40}\d[\w%°/ .-]{0,12}\s\Z")
_POWER_BEFORE = re.compile(
    r"(?:[^\w\]][kcdmµμn]?m|\b[Rr]|(?<!War )(?<!ype )(?<!ase )(?<!age )(?<!ass )(?<!art )\bI|[χη]|[×x·*] ?10)\Z"
)
_POWER_ENDS = frozenset("mRrIχη0")
_NAME_BEFORE = re.compile(r"[A-Za-z_][\w.]*\Z")
_ARRAY_NAMES = frozenset(
    {"arr", "array", "list", "args", "argv", "data", "dict", "items", "matrix", "vec", "row", "rows", "col", "cols"}
    | {"nums", "values", "str", "params", "idx", "buf", "tmp"}
)
_CODE_AFTER = re.compile(r"\.\w+\(|\s{0,2}[-+*/]?=")
_ELEMENT_AFTER = re.compile(r"[A-Z][a-z]?(?![A-Za-z])")
_FIRST_YEAR, _LAST_YEAR = 1500, 2100


def reads_as_something_else(
    answer: str, start: int, end: int, body: str, references: Sequence[Reference], index: EvidenceIndex
) -> bool:
    """Whether a bracket that could be a marker is likely no citation, by what it says and stands next to."""
    if not _NUMBERS_ONLY.fullmatch(body):
        return (body in "xX" and _is_checkbox(answer, start)) or _is_locant(answer, start, end)
    if _follows_interval_word(answer, start, len(references)) or _is_power(answer, start, body):
        return True
    if answer[end : end + 1] == "=" and answer[start - 1 : start].isalnum():
        return True  # ?ids[1]=7
    if answer[start - 1 : start] == "[" and _ELEMENT_AFTER.match(answer, end):
        return True  # [[3]H]ketanserin
    if all(reference.evidence_id is not None for reference in references):
        return False
    return (
        _is_year(references, index)
        or _from_zero(references)
        or _is_index(answer, start, end, references)
        or (len(references) > 1 and _STATISTIC_BEFORE.search(answer[max(0, start - 70) : start]) is not None)
        or _is_isotope(answer, start, end)
    )


def _is_checkbox(answer: str, start: int) -> bool:
    return answer[max(0, start - 2) : start] in ("- ", "* ", "+ ")


def _is_locant(answer: str, start: int, end: int) -> bool:
    """``pyrazolo[1,5-a]pyrimidine``: letters touch both brackets."""
    return answer[start - 1 : start].islower() and answer[end : end + 1].islower()


def _is_year(references: Sequence[Reference], index: EvidenceIndex) -> bool:
    """``Smith et al. [2004]``, ``[1914-1918]``: four digits, and no evidence is numbered so high."""
    if index.highest_number >= 1000:
        return False
    return all(len(reference.name) == 4 and _FIRST_YEAR <= int(reference.name) < _LAST_YEAR for reference in references)


def _from_zero(references: Sequence[Reference]) -> bool:
    """``[0, 1]``, ``[0-35]``: an interval or a scale. A lone ``[0]`` is a reference that names nothing."""
    return len(references) > 1 and references[0].name == "0" and references[0].evidence_id is None


def _follows_interval_word(answer: str, start: int, members: int) -> bool:
    """``95% CI [2, 8]``."""
    return members > 1 and _INTERVAL_BEFORE.search(answer[max(0, start - 24) : start]) is not None


def _is_power(answer: str, start: int, body: str) -> bool:
    """``mm[2]``, ``R[2]``, ``5 × 10[7]``: a power whose raised digit came in brackets."""
    return (
        answer[start - 1 : start] in _POWER_ENDS
        and len(body) <= 2
        and _POWER_BEFORE.search(answer[max(0, start - 6) : start]) is not None
    )


def _is_index(answer: str, start: int, end: int, references: Sequence[Reference]) -> bool:
    """``x[3]``, ``rows[0].name``: an index, in text that does not mark its code."""
    if len(references) > 2:
        return False
    name = _NAME_BEFORE.search(answer[max(0, start - 40) : start])
    if name is None:
        return False
    word = name.group()
    return (
        (len(word) == 1 and word.islower())
        or "_" in word
        or word.casefold() in _ARRAY_NAMES
        or _CODE_AFTER.match(answer, end) is not None
    )


def _is_isotope(answer: str, start: int, end: int) -> bool:
    """``[125]I-labelled``, ``[99][m]Tc``: a mass number before its element."""
    if answer.startswith("[m]", end):
        return True
    return _ELEMENT_AFTER.match(answer, end) is not None and answer[start - 1 : start] not in (".", "!", "?")
