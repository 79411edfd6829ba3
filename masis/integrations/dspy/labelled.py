"""Labelled answers to compile a critic or a reviser on, from gold labels of cases or from
reviewers' decisions.

An override shows which sentences a person changed, an approval means that nothing is wrong, and a
label describes one claim or reference. A rejection or an escalation without a label is left out,
because it doesn't say which part is wrong.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from masis.api.audits import audit_citations
from masis.bench.outcomes import find_span
from masis.bench.rows import group_keys
from masis.errors import InputError, StoreError
from masis.schema.case import Case, Evidence, GoldLabels
from masis.schema.review import Decision
from masis.services import Workbench
from masis.services.records import CaseFilter

BY_CODE = frozenset({"fabricated_citation", "uncited", "redundant"})
"""Faults that the citation audit finds by itself. A critic may raise them, but doesn't have to."""
_CLAIMS = {
    "partial": "unsupported",
    "contradicted": "contradiction",
    "unsupported": "unsupported",
    "unverifiable": "unsupported",
}
"""The kinds of faults by the verdict or label of a claim."""
_REFERENCES = {
    "fabricated": "fabricated_citation",
    "misattributed": "misattributed",
    "redundant": "redundant",
    "unsupported": "misattributed",
    "contradicts": "contradiction",
}
"""The kinds of faults by the label of a reference."""


class ExpectedFault(NamedTuple):
    """One fault that people found.

    ``span`` is its position in the answer, or None if it's about the whole answer. If ``required``,
    a critic has to find it.
    """

    kind: str
    span: tuple[int, int] | None
    words: str
    description: str
    severity: str = "high"
    required: bool = True


class LabelledAnswer(NamedTuple):
    """One answer with the faults that people found.

    ``right`` and ``wrong`` are statements that are supported or not.
    """

    id: str
    query: str
    answer: str
    evidence: tuple[Evidence, ...]
    reasoning_steps: tuple[str, ...]
    expected: tuple[ExpectedFault, ...]
    right: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether a critic has nothing to find."""
        return not any(fault.required for fault in self.expected)


class TrainTestSplit(NamedTuple):
    """The answers to learn from and those to measure on, which share no question."""

    train: tuple[LabelledAnswer, ...]
    held_out: tuple[LabelledAnswer, ...]


def from_cases(cases: Iterable[Case]) -> list[LabelledAnswer]:
    """Convert the cases that have an answer and gold labels."""
    return [
        _of_gold(case, case.labels) for case in cases if case.labels and (case.answer or "").strip()
    ]


def from_decisions(workbench: Workbench) -> list[LabelledAnswer]:
    """Convert the answers whose faults, or lack of faults, a person's decision describes."""
    answers: list[LabelledAnswer] = []
    page = 1
    case_filter = CaseFilter(
        states=("approved", "overridden", "rejected", "escalated"), order="oldest", size=500
    )
    while rows := workbench.cases.find(case_filter.model_copy(update={"page": page})).rows:
        for summary in rows:
            entry = workbench.reviews.current(summary.id)
            decision = entry.decision if entry else None
            if decision is not None and decision.source == "HUMAN":
                answers += _of_decision(workbench, workbench.store.cases.get(summary.id), decision)
        page += 1
    return answers


def split_by_question(
    cases: Sequence[LabelledAnswer], held_out: float, seed: int
) -> TrainTestSplit:
    """Split answers at random: a share ``held_out`` of the questions to measure on, the others to
    learn from.

    Answers to the same question, or from the same text, are in the same part. Flawed and clean
    answers are split separately. Raises InputError if a part would be empty.
    """
    names = group_keys(
        [
            (f"query:{case.query}", *(chunk.text for chunk in case.evidence if chunk.text))
            for case in cases
        ]
    )
    members: dict[str, list[LabelledAnswer]] = {}
    for name, case in zip(names, cases, strict=True):
        members.setdefault(name, []).append(case)
    train: list[LabelledAnswer] = []
    measured: list[LabelledAnswer] = []
    for flawed in (True, False):
        kind = sorted(
            name
            for name, group in members.items()
            if any(not case.clean for case in group) is flawed
        )
        random.Random(f"{seed} {flawed}").shuffle(kind)
        cut = round(len(kind) * held_out)
        measured += [case for name in kind[:cut] for case in members[name]]
        train += [case for name in kind[cut:] for case in members[name]]
    if not train or not measured:
        raise InputError(
            f"{len(cases)} labeled answers to {len(members)} questions can't be split",
            hint="Label more answers, or choose another --held-out.",
        )
    # Alternate flawed and clean answers, because BootstrapFewShot keeps the first that succeed as
    # demonstrations and should see both kinds.
    flawed_cases = [case for case in train if not case.clean]
    clean_cases = [case for case in train if case.clean]
    pairs = zip_longest(flawed_cases, clean_cases)
    alternating = (case for pair in pairs for case in pair if case is not None)
    return TrainTestSplit(tuple(alternating), tuple(measured))


def digest(cases: Iterable[LabelledAnswer]) -> str:
    """Return the SHA-256 of labelled answers."""
    content = json.dumps(
        [[*case[:3], [chunk.model_dump() for chunk in case.evidence], *case[4:]] for case in cases],
        ensure_ascii=False,
    )
    return hashlib.sha256(content.encode()).hexdigest()


def _of_gold(case: Case, labels: GoldLabels) -> LabelledAnswer:
    answer = case.answer or ""
    expected = [
        ExpectedFault(
            label.type,
            find_span(answer, label.text),
            label.text or "",
            label.description,
            label.severity or "high",
            label.type not in BY_CODE,
        )
        for label in labels.findings
    ]
    for citation in labels.citations:
        if citation.status == "redundant":
            words = citation.sentence or citation.text or ""
            expected.append(
                ExpectedFault(
                    "redundant", find_span(answer, words), words, "not needed here", "low", False
                )
            )
    right = [claim.text for claim in labels.claims if claim.verdict == "supported"]
    wrong = [claim.text for claim in labels.claims if claim.verdict in _CLAIMS]
    return _to_labelled(case, answer, expected, right, wrong)


def _of_decision(workbench: Workbench, case: Case, decision: Decision) -> Iterator[LabelledAnswer]:
    answer = case.answer
    if decision.run_id is not None:
        try:
            run = workbench.runs.get(decision.run_id)
        except StoreError:  # unfinished or purged, so the judged answer is unknown
            return
        iteration = decision.iteration
        answer = (
            run.iterations[iteration - 1].answer
            if iteration and iteration <= len(run.iterations)
            else run.final_answer
        )
    if not answer:
        return
    expected = []
    for label in decision.labels:
        if (
            label.start is None
            or label.end is None
            or answer[label.start : label.end] != label.text
        ):
            continue
        kinds = _REFERENCES if label.target == "reference" else _CLAIMS
        if kind := kinds.get(label.label):
            span = (label.start, label.end)
            expected.append(
                ExpectedFault(kind, span, label.text, label.note, required=kind not in BY_CODE)
            )
    marked = [fault.span for fault in expected if fault.span]
    if decision.corrected_answer:  # add the sentences that it no longer contains
        corrected = " ".join(decision.corrected_answer.split())
        for sentence in audit_citations(answer, case.evidence).sentences:
            start, end = sentence.start, sentence.end
            is_labelled = any(
                start < other_end and other_start < end for other_start, other_end in marked
            )
            if not is_labelled and " ".join(sentence.text.split()) not in corrected:
                expected.append(
                    ExpectedFault("changed", (start, end), sentence.text, "a reviewer changed this")
                )
    # Skip answers whose faults are unknown, or of a kind that critics aren't trained on.
    if expected or (decision.verdict == "approve" and not decision.reported):
        right = [
            label.text
            for label in decision.labels
            if label.target == "claim" and label.label == "supported"
        ]
        wrong = [fault.words for fault in expected if fault.required and fault.words]
        yield _to_labelled(case, answer, expected, right, wrong)


def _to_labelled(
    case: Case,
    answer: str,
    expected: Iterable[ExpectedFault],
    right: Iterable[str],
    wrong: Iterable[str],
) -> LabelledAnswer:
    steps = case.reasoning_steps
    return LabelledAnswer(
        case.id,
        case.query,
        answer,
        case.evidence,
        steps,
        tuple(expected),
        tuple(right),
        tuple(wrong),
    )


def shuffle_labels(cases: Sequence[LabelledAnswer], seed: int) -> list[LabelledAnswer]:
    """Return the same answers with each other's labels.

    This is a control, because an optimizer can't learn from such labels.
    """
    order = list(range(len(cases)))
    # Repeat until no answer has its own labels.
    while len(order) > 1 and any(
        position == own_position for own_position, position in enumerate(order)
    ):
        random.Random(seed).shuffle(order)
        seed += 1
    shuffled = []
    for case, other in zip(cases, (cases[position] for position in order), strict=True):
        expected, end = list(other.expected), len(case.answer)
        for number, fault in enumerate(expected):
            if fault.span is not None and fault.span[1] > end:  # move it to the end of this answer
                length = fault.span[1] - fault.span[0]
                expected[number] = fault._replace(span=(max(0, end - length), end))
        shuffled.append(
            case._replace(expected=tuple(expected), right=other.right, wrong=other.wrong)
        )
    return shuffled
