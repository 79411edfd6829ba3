"""Two systems' answers to one question, side by side: marks, issues, evidence and a word diff."""

from __future__ import annotations

from typing import TypedDict

from masis.schema.case import Case
from masis.schema.comparison import Judgement
from masis.schema.run import Run
from masis.schema.wording import shorten
from masis.views.answer import answer_view, unaudited_answer_view
from masis.views.diff import word_changes
from masis.views.systems import JUDGEMENT
from masis.views.words import LabelData, label

EVIDENCE_SHOWN = 20
"""The chunks shown for each answer; the case page has all."""

_LONGEST = 600


class PieceData(TypedDict):
    """A part of a text. ``issues`` numbers the issues about it, ``against`` says it contradicts."""

    text: str
    issues: list[int]
    tone: str
    starts: bool


class PairIssue(TypedDict):
    """One issue of an answer."""

    number: int
    label: LabelData
    severity: str
    text: str
    reason: str


class PairChunk(TypedDict):
    """One chunk of evidence; ``cited`` counts the answer's references to it."""

    id: str
    source: str
    cited: int
    pieces: list[PieceData]


class PairSide(TypedDict):
    """One answer of a pair."""

    system: str
    case: str
    href: str
    judgement: LabelData | None
    pieces: list[PieceData]
    no_answer: str
    issues: list[PairIssue]
    nothing_found: str
    evidence: list[PairChunk]
    evidence_total: int


class AnswerPairData(TypedDict):
    """What the component ``answer_pair`` draws. ``changes`` is None for equal answers."""

    sides: list[PairSide]
    changes: list[tuple[str, str]] | None
    same_evidence: bool


def pair_side(case: Case, run: Run | None, judgement: Judgement | None, *, href: str) -> PairSide:
    """Return one answer with what is known of it; ``href`` leads to its case."""
    audited = run is not None and bool(run.iterations)
    view = (
        answer_view(case, run, 0, shown=EVIDENCE_SHOWN)
        if run is not None and audited
        else unaudited_answer_view(case, f"{case.id}/plain", shown=EVIDENCE_SHOWN)
    )
    tones = {issue["number"]: issue["label"]["tone"] for issue in view["issues"]}
    # Issues are numbered from 1 in the data of the view.
    pieces: list[PieceData] = []
    started: set[int] = set()
    for piece in view["pieces"]:
        numbers = [number for number in piece.get("issues", []) if number in tones]
        pieces.append(
            {
                "text": piece["text"],
                "issues": numbers,
                "tone": tones[numbers[0]] if numbers else "",
                "starts": bool(set(numbers) - started),
            }
        )
        started.update(numbers)
    return {
        "system": case.system,
        "case": case.id,
        "href": href,
        "judgement": None if judgement is None else label(JUDGEMENT[judgement]),
        "pieces": pieces,
        "no_answer": "" if pieces else view["no_answer"],
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
        "evidence": [
            {
                "id": card["id"],
                "source": card["source"],
                "cited": card["cited"],
                "pieces": [
                    {
                        "text": part["text"],
                        "issues": [],
                        "tone": "bad"
                        if part.get("against")
                        else "good"
                        if part.get("claims")
                        else "",
                        "starts": False,
                    }
                    for part in card["pieces"]
                ],
            }
            for card in view["evidence"]
        ],
        "evidence_total": len(case.evidence),
    }


def answer_pair(first: PairSide, second: PairSide) -> AnswerPairData:
    """Return the data of two answers side by side, with the words that differ."""
    texts = ["".join(piece["text"] for piece in side["pieces"]) for side in (first, second)]
    chunks = [
        [
            (chunk["id"], "".join(part["text"] for part in chunk["pieces"]))
            for chunk in side["evidence"]
        ]
        for side in (first, second)
    ]
    return {
        "sides": [first, second],
        "changes": None
        if texts[0] == texts[1]
        else [(change.kind, change.text) for change in word_changes(*texts)],
        "same_evidence": sorted(chunks[0]) == sorted(chunks[1]),
    }
