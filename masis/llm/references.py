"""Whether each reference of a sentence bears it, from what the verifier said of the chunks (DESIGN.md, 4.1).

A sentence may be judged in several claims: one chunk then bears one of them, another chunk another, and neither is
needless. So each reference is judged once a sentence, and recorded with the claim it has most to do with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from masis.llm.quotes import Chunks
from masis.llm.replies import Stance
from masis.llm.verdicts import Judged
from masis.schema.audit import ClaimCheck, ReferenceCheck, ReferenceFinding

_CLOSEST: tuple[Stance | None, ...] = ("supports", "contradicts", "partly", "silent", None)
"""Which of several stances on the claims of a sentence tells most of a reference."""


class _Finding(NamedTuple):
    name: ReferenceFinding
    support: float | None
    reason: str
    better: str | None = None


def with_references(judged: Sequence[Judged], chunks: Chunks) -> tuple[ClaimCheck, ...]:
    """The checks, with what can be said of the references of their sentences."""
    sentences: dict[object, list[int]] = defaultdict(list)
    for at, each in enumerate(judged):
        number = each.check.claim.sentence
        sentences[("alone", at) if number is None else number].append(at)
    found: dict[int, list[ReferenceCheck]] = defaultdict(list)
    for members in sentences.values():
        group = [judged[at] for at in members]
        for cited in dict.fromkeys(chunk for each in group for chunk in each.check.claim.cited):
            finding = _finding(cited, group, chunks)
            found[members[_owner(cited, group)]].append(
                ReferenceCheck(
                    evidence_id=cited,
                    finding=finding.name,
                    support=finding.support,
                    better=finding.better,
                    reason=finding.reason,
                )
            )
    return tuple(
        each.check.model_copy(update={"references": tuple(found[at])}) if at in found else each.check
        for at, each in enumerate(judged)
    )


def _owner(cited: str, group: Sequence[Judged]) -> int:
    """The place in the group of the claim that the reference has most to do with."""
    return min(range(len(group)), key=lambda at: (_CLOSEST.index(group[at].stances.get(cited)), at))


def _finding(cited: str, group: Sequence[Judged], chunks: Chunks) -> _Finding:
    if not chunks.texts.get(cited, "").strip():
        return _Finding("unchecked", None, "This chunk has no text to check against.")
    owner = group[_owner(cited, group)]
    stances = {each.stances.get(cited) for each in group}
    if "supports" in stances:
        return _Finding("bears", owner.check.support, "It says this.")
    if "contradicts" in stances:
        return _Finding("contradicts", 0.0, owner.check.issue or "It says otherwise.")
    if others := _others_suffice(cited, group):
        return _Finding("needless", 0.0, f"{' and '.join(others)} bear this without it.")
    if "partly" in stances:
        return _Finding("partly_bears", owner.check.support, "It says part of this.")
    if None in stances:
        return _Finding("unchecked", None, "The verifier did not say whether it bears this.")
    if better := _better(group):
        return _Finding("misattributed", 0.0, f"{cited} does not say this; {better} does.", better)
    return _Finding("unsupported", 0.0, "It does not say this.")


def _others_suffice(cited: str, group: Sequence[Judged]) -> tuple[str, ...]:
    """The other cited chunks that bear every claim of the sentence whole; empty where they don't."""
    bearing: list[str] = []
    for each in group:
        others = [c for c in each.check.claim.cited if c != cited and each.stances.get(c) == "supports"]
        if not others:
            return ()
        bearing.extend(others[:1])
    return tuple(dict.fromkeys(bearing))


def _better(group: Sequence[Judged]) -> str | None:
    """A chunk that the sentence doesn't cite and that bears a claim of it that nothing cited bears."""
    for each in group:
        cited = each.check.claim.cited
        if each.check.verdict != "supported" or any(each.stances.get(c) in ("supports", "partly") for c in cited):
            continue
        for chunk, stance in each.stances.items():
            if stance == "supports" and chunk not in cited:
                return chunk
    return None
