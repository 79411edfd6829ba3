"""Truncates an answer and its evidence to the parts that fit the limits.

An audit checks the beginning of the answer, its first claims, and as much evidence as fits, cited
chunks first. Warnings list the parts that weren't checked, and an answer that wasn't checked in
full always needs review (``acceptance``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from masis.audit.claims import withhold_verdict
from masis.schema.audit import CitationAudit, Claim, ClaimCheck, Revision
from masis.schema.case import Evidence
from masis.settings import Settings

_SENTENCE_END_WINDOW = 2_000
"""The last sentence may end this many characters before the limit, so that no sentence is cut."""
NOT_ALL_EVIDENCE = (
    "Not all of the evidence was checked, so it isn't known whether something is missing from it."
)


def truncate_answer(answer: str, settings: Settings) -> str:
    """Return the checked part of an answer: its beginning, up to the last sentence that fits."""
    limit = settings.max_answer_characters
    if len(answer) <= limit:
        return answer
    ends = [
        answer.rfind(stop, max(0, limit - _SENTENCE_END_WINDOW), limit) + 1
        for stop in (".", "!", "?", "\n", "。")
    ]
    return answer[: max(ends) or limit]


def select_evidence(
    evidence: tuple[Evidence, ...], audit: CitationAudit, settings: Settings
) -> tuple[Evidence, ...]:
    """Return the evidence that an answer is checked against, in its order.

    Cited chunks are selected first, then the others. The last chunk that fits may be cut at its
    end, so that offsets stay valid.
    """
    remaining = settings.max_evidence_characters
    if (
        len(evidence) <= settings.max_evidence
        and sum(len(chunk.text) for chunk in evidence) <= remaining
    ):
        return evidence
    cited = {citation.evidence_id for citation in audit.citations}
    ordered = sorted(
        range(len(evidence)), key=lambda number: (evidence[number].id not in cited, number)
    )
    selected: dict[int, Evidence] = {}
    for number in ordered[: settings.max_evidence]:
        if remaining <= 0:
            break
        chunk = evidence[number]
        selected[number] = (
            chunk
            if len(chunk.text) <= remaining
            else chunk.model_copy(update={"text": chunk.text[:remaining]})
        )
        remaining -= len(chunk.text)
    return tuple(selected[number] for number in sorted(selected))


def limit_claims(
    claims: Sequence[Claim], evidence: Sequence[Evidence], settings: Settings
) -> tuple[Claim, ...]:
    """Return the claims to check: the first ones, up to the limit.

    They keep only citations of evidence that is checked.
    """
    checked_ids = {chunk.id for chunk in evidence}
    return tuple(
        (
            claim
            if checked_ids.issuperset(claim.cited)
            else claim.model_copy(
                update={
                    "cited": tuple(
                        evidence_id for evidence_id in claim.cited if evidence_id in checked_ids
                    )
                }
            )
        )
        for claim in claims[: settings.max_claims]
    )


def limit_warnings(
    answer: tuple[str, str],
    evidence: tuple[Sequence[Evidence], Sequence[Evidence]],
    claims: tuple[int, int],
) -> Iterator[str]:
    """Yield a warning for each part that was not checked.

    Each pair has the full value and the checked part.
    """
    text_lengths = [sum(len(chunk.text) for chunk in chunks) for chunks in evidence]
    for total, checked, unit in (
        (len(answer[0]), len(answer[1]), "characters of the answer"),
        (claims[0], claims[1], "claims"),
        (len(evidence[0]), len(evidence[1]), "chunks of evidence"),
        (text_lengths[0], text_lengths[1], "characters of evidence"),
    ):
        if checked < total:
            yield f"{checked:,} of {total:,} {unit} were checked."


def append_unchecked_tail(revision: Revision, checked_answer: str, full_answer: str) -> Revision:
    """Return a revision of the checked part of an answer with the unchecked rest appended."""
    return revision.model_copy(
        update={"revised_answer": revision.revised_answer + full_answer[len(checked_answer) :]}
    )


def withhold_absence_verdicts(checks: Iterable[ClaimCheck]) -> tuple[ClaimCheck, ...]:
    """Withhold verdicts that say evidence is missing, because not all of it was checked."""
    return tuple(
        (
            withhold_verdict(check, "limits", NOT_ALL_EVIDENCE)
            if check.verdict in ("unsupported", "partial")
            else check
        )
        for check in checks
    )
