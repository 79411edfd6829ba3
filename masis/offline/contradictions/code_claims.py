"""Claims about code, checked against code by the identifiers they name.

Code speaks in names, not in sentences: ``AuthService keeps its refresh token in httpOnly cookies`` is in no line of it,
but ``AuthService``, ``refreshToken`` and ``httpOnly`` are. Where sources are code (``type`` "code", or the ending of a
file of code), a claim that names identifiers is supported if the sources name all of them and enough of its other
words, taken apart at humps and underscores; it is not supported if one of its identifiers is in no source. What code
*does* is not understood: a claim that names the right things and is wrong about them can pass
(docs/draft-critique.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from masis.offline.matching.key_points import plain_text
from masis.offline.parsing.facts import agree, extract
from masis.offline.text.tokens import stem, tokens
from masis.schema.audit import ClaimCheck, Quote
from masis.schema.case import Evidence

CODE = "code"
ENDINGS = frozenset(
    "c cc cpp cs go h hpp java js json jsx kt lua pl proto py rb rs scala sh sql swift tf toml ts tsx yaml yml".split()
)
LEAST_NAMED = 0.35
"""The share of the claim's words, by weight, that the names in the sources must hold, identifiers included."""
BORNE_FROM = 0.6
"""Support of a claim of which the sources name the identifiers alone; all its words named is 1."""
INVENTED = 0.2
"""The most support that is left to a claim with an identifier that no source has."""
NAME_WEIGHT = 1.5
"""What a word of an identifier weighs, as a number does, against 1 for a plain word."""
_LONGEST = 120

_IDENTIFIER = re.compile(
    r"`(?P<quoted>[^`\s]{2,120})`"
    r"|(?<![\w/])(?P<path>/[\w-]{1,60}(?:/[\w{}:-]{1,60}){1,9})"
    r"|\b(?P<name>[^\W\d_]\w{1,119})"
)
_DENIES = re.compile(r"\b(?:not|no|never|without|cannot|nor|neither|instead)\b|n['’]t\b", re.IGNORECASE)
_HUMPED = re.compile(r"[a-z\d][A-Z]|[^\W_]_[^\W_]")
_HUMPS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def is_code(chunk: Evidence) -> bool:
    """Whether a piece of evidence is code: by its type, or by the ending of its path or id (a web address has none)."""
    files = [name for name in _names_of(chunk) if "." in name and "://" not in name]
    kind = (chunk.model_extra or {}).get("type")
    return kind == CODE or any(name.rpartition(".")[2].lower() in ENDINGS for name in files)


def by_identifiers(check: ClaimCheck, evidence: Sequence[Evidence]) -> ClaimCheck:
    """The check, decided by the identifiers that the claim names, where the sources are code and it names any."""
    code = [chunk for chunk in evidence if is_code(chunk)]
    if not code or check.support is None or check.verdict == "contradicted":
        return check
    sentence = plain_text(check.claim)
    named = list(dict.fromkeys(identifiers(sentence)))
    if not named:
        return check
    invented = [name for name in named if not any(_stands(name, chunk) for chunk in evidence)]
    if invented:
        return _not_borne(check, invented) if len(code) == len(evidence) else check
    holding = [chunk for chunk in code if any(_stands(name, chunk) for name in named)]
    share = _share_named(sentence, code)
    if check.verdict == "supported" or not holding or share < LEAST_NAMED or _says_more(sentence, code):
        return check
    return check.model_copy(
        update={
            "verdict": "supported",
            "support": round(BORNE_FROM + (1 - BORNE_FROM) * share, 4),
            "confidence": round(share, 4),
            "sources": tuple(chunk.id for chunk in holding),
            "quotes": tuple(_quotes(named, holding)) or check.quotes,
            "uncovered": (),
            "issue": None,
        }
    )


def identifiers(text: str) -> Iterator[str]:
    """The identifiers of a text: what is set as code, paths, names with humps or underscores; brackets cut off."""
    for found in _IDENTIFIER.finditer(text):
        if found["name"]:
            if _HUMPED.search(found["name"]):
                yield found["name"]
        else:
            yield (found["quoted"] or found["path"]).removesuffix("()").strip(".,;:")


def _names_of(chunk: Evidence) -> tuple[str, ...]:
    return (chunk.id, chunk.source) if chunk.source else (chunk.id,)


def _stands(name: str, chunk: Evidence) -> bool:
    return any(_find(name, text) >= 0 for text in (chunk.text, *_names_of(chunk)))


def _find(name: str, text: str) -> int:
    """Where a text has this name as a whole, whatever its case; -1 where it hasn't."""
    low, wanted, at = text.lower(), name.lower(), -1
    while (at := low.find(wanted, at + 1)) >= 0:
        before, after = low[at - 1 : at], low[at + len(wanted) : at + len(wanted) + 1]
        if not (before.isalnum() or before == "_" or after.isalnum() or after == "_"):
            return at
    return -1


def _share_named(sentence: str, code: Sequence[Evidence]) -> float:
    """The share of the claim's words that are words of the sources or parts of their names, by weight."""
    held = {stem(part) for chunk in code for text in (chunk.text, *_names_of(chunk)) for part in _HUMPS.findall(text)}
    named = {part.lower() for name in identifiers(sentence) for part in (name, *re.split(r"[\W_]+", name))}
    total = met = 0.0
    for word in tokens(sentence):
        parts = [stem(part) for part in _HUMPS.findall(word.text)] or [word.stem]
        weight = NAME_WEIGHT if word.text.lower() in named else word.weight
        total += weight
        met += weight * (word.stem in held or all(part in held for part in parts))
    return met / total if total else 0.0


def _says_more(sentence: str, code: Sequence[Evidence]) -> bool:
    """Whether the claim denies something or has a number that no source has: names alone don't bear that."""
    if _DENIES.search(sentence):
        return True
    known = [fact for chunk in code for fact in extract(chunk.text) if fact.kind != "name"]
    return any(fact.kind != "name" and not any(agree(fact, other) for other in known) for fact in extract(sentence))


def _not_borne(check: ClaimCheck, invented: Sequence[str]) -> ClaimCheck:
    names = ", ".join(name[:_LONGEST] for name in invented)
    return check.model_copy(
        update={
            "verdict": "unsupported",
            "support": min(check.support or 0.0, INVENTED),
            "sources": (),
            "issue": f"No source names {names}.",
        }
    )


def _quotes(named: Sequence[str], holding: Sequence[Evidence]) -> Iterator[Quote]:
    for chunk in holding:
        for name in named:
            if (at := _find(name, chunk.text)) >= 0:
                yield Quote(
                    evidence_id=chunk.id, start=at, end=at + len(name), text=chunk.text[at : at + len(name)], score=1.0
                )
