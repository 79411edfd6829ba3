"""Two systems' answers to one question, side by side: marks, issues, evidence and a word diff."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypedDict

from masis.schema.case import Case
from masis.schema.comparison import DECIDED, Judgement
from masis.schema.review import LogEntry
from masis.schema.run import Run
from masis.schema.wording import shorten
from masis.views.answer import answer_view, unaudited_answer_view
from masis.views.diff import figures_and_markers, word_changes
from masis.views.labels import label_lines
from masis.views.marks import EvidencePiece
from masis.views.numbers import day
from masis.views.systems import JUDGEMENT
from masis.views.words import MISSING_FIGURE, LabelData, label

EVIDENCE_SHOWN = 20
"""The chunks shown for each answer; the case page has all."""

LEAST_SAME = 0.4
"""The least share of words in common for which a word diff is shown; with fewer, it reads as two
texts mixed up."""

_BEARING = {"good": "supports", "bad": "contradicts", "warn": "missing in"}

_LONGEST = 600


class PieceData(TypedDict):
    """A part of an answer. ``issues`` numbers the issues about it, and ``says`` is what its mark
    means if it isn't one of an issue.
    """

    text: str
    issues: list[int]
    tone: str
    starts: bool
    says: str


class PairIssue(TypedDict):
    """One issue of an answer."""

    number: int
    label: LabelData
    severity: str
    text: str
    reason: str


class EvidencePart(TypedDict):
    """A part of a chunk. ``of`` names the systems about whose claims it says something."""

    text: str
    tone: str
    of: str


class PairChunk(TypedDict):
    """One chunk of evidence; ``cited`` says in words which answers cite it."""

    id: str
    source: str
    cited: str
    pieces: list[EvidencePart]


class PairEvidence(TypedDict):
    """The evidence of one answer, or of both if it's the same; ``more`` counts the other chunks."""

    title: str
    chunks: list[PairChunk]
    more: int


class _SideChunk(NamedTuple):
    """A chunk as one answer uses it: its marks are the ends and tones of its parts, in order."""

    id: str
    source: str
    text: str
    cited: bool
    marks: tuple[tuple[int, str], ...]


class PairSide(NamedTuple):
    """One answer of a pair, with the evidence as it uses it."""

    answer: PairAnswer
    chunks: tuple[_SideChunk, ...]
    evidence_total: int


class PairAnswer(TypedDict):
    """What is drawn of one answer.

    ``decision`` says who decided it and when, ``reason`` and ``note`` why, and ``labels`` which
    words that person labelled. ``opinion`` says whose the issues are, and ``nothing_found``
    replaces an empty list of issues.
    """

    system: str
    case: str
    href: str
    judgement: LabelData | None
    decision: str
    reason: str
    note: str
    labels: list[str]
    pieces: list[PieceData]
    no_answer: str
    opinion: str
    issues: list[PairIssue]
    nothing_found: str


class PairHeading(TypedDict):
    """The question, its place in the list, and a number that changes when it must get the focus."""

    question: str
    place: str
    focus: int


class AnswerPairData(TypedDict):
    """What the component ``answer_pair`` draws.

    ``facts`` holds the figures and citation markers that only the first and only the second answer
    has. ``changes`` is None if a word diff wouldn't help; ``no_changes`` says why.
    """

    heading: PairHeading
    sides: list[PairAnswer]
    facts: list[list[str]]
    changes: list[tuple[str, str]] | None
    no_changes: str
    evidence: list[PairEvidence]


def pair_side(
    case: Case,
    run: Run | None,
    judgement: Judgement | None,
    *,
    decision: LogEntry | None,
    href: str,
) -> PairSide:
    """Return one answer with what is known of it; ``href`` leads to its case.

    ``decision`` is the one in force, as far as the viewer may see it. It's shown only with the
    judgement that it explains.
    """
    audited = run is not None and bool(run.iterations)
    view = (
        answer_view(case, run, 0, shown=EVIDENCE_SHOWN)
        if run is not None and audited
        else unaudited_answer_view(case, f"{case.id}/plain", shown=EVIDENCE_SHOWN)
    )
    # Other claims quote the passages nearest to them, which don't bear them out.
    confirmed = {
        index
        for index, check in enumerate(
            run.iterations[0].claims if run is not None and audited else ()
        )
        if check.verdict in ("supported", "partial")
    }
    tones = {issue["number"]: issue["label"]["tone"] for issue in view["issues"]}
    # Issues are numbered from 1 in the data of the view.
    pieces: list[PieceData] = []
    started: set[int] = set()
    for piece in view["pieces"]:
        numbers = [number for number in piece.get("issues", []) if number in tones]
        is_figure = piece.get("fact") == "figure"
        pieces.append(
            {
                "text": piece["text"],
                "issues": numbers,
                "tone": tones[numbers[0]] if numbers else "warn" if is_figure else "",
                "starts": bool(set(numbers) - started),
                "says": MISSING_FIGURE.meaning if is_figure else "",
            }
        )
        started.update(numbers)
    given = decision.decision if decision is not None and judgement in DECIDED else None
    word = None if judgement is None else JUDGEMENT[judgement]
    answer: PairAnswer = {
        "system": case.system,
        "case": case.id,
        "href": href,
        "judgement": None if word is None else label(word),
        "decision": (
            f"{word.text} by {given.reviewer} on {day(decision.at)}"
            if word is not None and given is not None and decision is not None
            else ""
        ),
        "reason": "" if given is None else shorten(given.reason, _LONGEST),
        "note": "" if given is None else shorten(given.note, _LONGEST),
        "labels": [] if given is None else [line.text for line in label_lines(given, case, run)],
        "pieces": pieces,
        "no_answer": "" if pieces else view["no_answer"],
        "opinion": (
            ""
            if not audited
            else "The audit's opinion"
            if given is None
            else "The audit's opinion; the decision above counts instead"
        ),
        "issues": [
            {
                "number": issue["number"],
                "label": issue["label"],
                "severity": issue["severity"],
                "text": shorten(issue["description"], _LONGEST),
                "reason": shorten(issue["reason"], _LONGEST),
            }
            for issue in view["issues"]
        ],
        "nothing_found": view["nothing_found"] if audited else "This answer isn't audited yet.",
    }
    return PairSide(
        answer,
        tuple(
            _side_chunk(card["id"], card["source"], card["cited"] > 0, card["pieces"], confirmed)
            for card in view["evidence"]
        ),
        len(case.evidence),
    )


def _side_chunk(
    chunk_id: str,
    source: str,
    cited: bool,
    pieces: Iterable[EvidencePiece],
    confirmed: Collection[int],
) -> _SideChunk:
    marks, text = [], ""
    for piece in pieces:
        text += piece["text"]
        claims = piece.get("claims", [])
        tone = ""
        if piece.get("against"):
            tone = "bad"
        elif any(claim in confirmed for claim in claims):
            tone = "good"
        # Points that the answer leaves out have negative numbers (``IssueData.claim``).
        elif any(claim < 0 for claim in claims):
            tone = "warn"
        marks.append((len(text), tone))
    return _SideChunk(chunk_id, source, text, cited, tuple(marks))


def answer_pair(first: PairSide, second: PairSide, heading: PairHeading) -> AnswerPairData:
    """Return the data of two answers side by side, with the words that differ."""
    texts = ["".join(piece["text"] for piece in side.answer["pieces"]) for side in (first, second)]
    changes, no_changes = _changes(*texts)
    before, now = (Counter(figures_and_markers(text)) for text in texts)
    keys = [sorted((chunk.id, chunk.text) for chunk in side.chunks) for side in (first, second)]
    if keys[0] == keys[1]:
        by_key = {(chunk.id, chunk.text): chunk for chunk in first.chunks}
        merged = [
            _merge_chunk(
                {
                    first.answer["system"]: by_key[chunk.id, chunk.text],
                    second.answer["system"]: chunk,
                }
            )
            for chunk in second.chunks
        ]
        more = second.evidence_total - len(merged)
        evidence = [PairEvidence(title="Evidence, the same for both", chunks=merged, more=more)]
    else:
        evidence = [
            PairEvidence(
                title=f"Evidence of {side.answer['system']}",
                chunks=[_merge_chunk({side.answer["system"]: chunk}) for chunk in side.chunks],
                more=side.evidence_total - len(side.chunks),
            )
            for side in (first, second)
        ]
    return {
        "heading": heading,
        "sides": [first.answer, second.answer],
        "facts": [list(before - now), list(now - before)],
        "changes": changes,
        "no_changes": no_changes,
        "evidence": evidence,
    }


def _changes(before: str, after: str) -> tuple[list[tuple[str, str]] | None, str]:
    """Return the words that differ, or why they aren't shown."""
    if before == after:
        return None, "Both answers are the same, word for word."
    changes: list[tuple[str, str]] = [
        (change.kind, change.text) for change in word_changes(before, after)
    ]
    same = sum(len(text.split()) for kind, text in changes if kind == "same")
    words = max(1, len(before.split()), len(after.split()))
    if same / words < LEAST_SAME:
        return None, "The answers differ in most words, so read them side by side above."
    return changes, ""


def _merge_chunk(by_system: Mapping[str, _SideChunk]) -> PairChunk:
    """Return a chunk with the marks of the systems' answers."""
    [chunk, *_] = by_system.values()
    pieces: list[EvidencePart] = []
    start = 0
    for end in sorted({end for held in by_system.values() for end, _ in held.marks}):
        tones = {
            system: tone
            for system, held in by_system.items()
            if (tone := next(tone for until, tone in held.marks if until >= end))
        }
        # The same words can bear out one answer and be missing in the other.
        is_mixed = len(set(tones.values())) > 1
        pieces.append(
            {
                "text": chunk.text[start:end],
                "tone": "calm" if is_mixed else next(iter(tones.values()), ""),
                "of": ", ".join(
                    f"{_BEARING[tone]} {system}" if is_mixed else system
                    for system, tone in tones.items()
                ),
            }
        )
        start = end
    citing = [system for system, held in by_system.items() if held.cited]
    return {
        "id": chunk.id,
        "source": chunk.source,
        "cited": f"cited by {' and '.join(citing)}" if citing else "",
        "pieces": pieces,
    }
