"""What an audit checks of an answer or a case that is larger than the settings allow (settings of
the group limits).

The beginning of the answer, its first claims, and as much evidence as fits, what the answer cites
first. The rest is named in words, and an answer of which something was not checked always needs
review (``acceptance``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from masis.audit.claims import withheld
from masis.schema.audit import CitationAudit, Claim, ClaimCheck, Revision
from masis.schema.case import Evidence
from masis.settings import Settings

_SENTENCE_WITHIN = 2_000
"""Characters before the limit in which the end of a sentence is looked for, so that none is cut in
two.
"""
NOT_ALL_EVIDENCE = "Not all of the evidence was checked, so that what it lacks is not known."


def answer_within(answer: str, settings: Settings) -> str:
    """Return the part of an answer that is checked: its beginning, to the last sentence
    that fits.
    """
    most = settings.max_answer_characters
    if len(answer) <= most:
        return answer
    ends = [
        answer.rfind(stop, max(0, most - _SENTENCE_WITHIN), most) + 1
        for stop in (".", "!", "?", "\n", "。")
    ]
    return answer[: max(ends) or most]


def evidence_within(
    evidence: tuple[Evidence, ...], audit: CitationAudit, settings: Settings
) -> tuple[Evidence, ...]:
    """Return the evidence that an answer is checked against, in its order: what it cites first,
    then the first chunks.

    The last chunk that fits may be cut at its end, so that its offsets stay true.
    """
    left = settings.max_evidence_characters
    if (
        len(evidence) <= settings.max_evidence
        and sum(len(chunk.text) for chunk in evidence) <= left
    ):
        return evidence
    cited = {citation.evidence_id for citation in audit.citations}
    ordered = sorted(
        range(len(evidence)), key=lambda number: (evidence[number].id not in cited, number)
    )
    taken: dict[int, Evidence] = {}
    for number in ordered[: settings.max_evidence]:
        if left <= 0:
            break
        chunk = evidence[number]
        taken[number] = (
            chunk
            if len(chunk.text) <= left
            else chunk.model_copy(update={"text": chunk.text[:left]})
        )
        left -= len(chunk.text)
    return tuple(taken[number] for number in sorted(taken))


def claims_within(
    claims: Sequence[Claim], evidence: Sequence[Evidence], settings: Settings
) -> tuple[Claim, ...]:
    """Return the claims that are checked, the first of the answer; each cites only evidence that is
    checked.
    """
    ids = {chunk.id for chunk in evidence}
    return tuple(
        (
            claim
            if ids.issuperset(claim.cited)
            else claim.model_copy(
                update={"cited": tuple(name for name in claim.cited if name in ids)}
            )
        )
        for claim in claims[: settings.max_claims]
    )


def limit_warnings(
    answer: tuple[str, str],
    evidence: tuple[Sequence[Evidence], Sequence[Evidence]],
    claims: tuple[int, int],
) -> Iterator[str]:
    """Say what was not checked. Each pair holds the whole and the part of it that was checked."""
    texts = [sum(len(chunk.text) for chunk in chunks) for chunks in evidence]
    for whole, part, what in (
        (len(answer[0]), len(answer[1]), "characters of the answer"),
        (claims[0], claims[1], "claims"),
        (len(evidence[0]), len(evidence[1]), "chunks of evidence"),
        (texts[0], texts[1], "characters of evidence"),
    ):
        if part < whole:
            yield f"{part:,} of {whole:,} {what} were checked."


def append_unchecked_tail(revision: Revision, checked: str, whole: str) -> Revision:
    """Return a revision of the checked part of an answer as one of the whole: the rest follows it
    as it was.
    """
    return revision.model_copy(
        update={"revised_answer": revision.revised_answer + whole[len(checked) :]}
    )


def without_absence(checks: Iterable[ClaimCheck]) -> tuple[ClaimCheck, ...]:
    """Return the checks with no verdict that rests on what the evidence lacks: not all of it was
    looked at.
    """
    return tuple(
        (
            withheld(check, "limits", NOT_ALL_EVIDENCE)
            if check.verdict in ("unsupported", "partial")
            else check
        )
        for check in checks
    )
