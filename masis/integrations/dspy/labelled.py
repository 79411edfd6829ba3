"""What people labelled, as cases to compile a critic or a reviser on: gold labels of cases, or
decisions of reviewers.

An override tells which sentences a person changed, an approval that nothing is wrong, a label what
one claim or reference is. A rejection or an escalation without a label says that something is
wrong, and not what: it is left out.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from masis.api.audits import audit_citations
from masis.bench.outcomes import place_of
from masis.bench.rows import group_keys
from masis.errors import InputError, StoreError
from masis.schema.case import Case, Evidence, GoldLabels
from masis.schema.review import Decision
from masis.services import Workbench
from masis.services.records import CaseFilter

BY_CODE = frozenset({"fabricated_citation", "uncited", "redundant"})
"""What the citation audit finds by itself: a critic may say it too, and need not."""
_CLAIMS = {
    "partial": "unsupported",
    "contradicted": "contradiction",
    "unsupported": "unsupported",
    "unverifiable": "unsupported",
}
"""Kinds of faults by the verdict or label of a claim, and of a reference."""
_REFERENCES = {
    "fabricated": "fabricated_citation",
    "misattributed": "misattributed",
    "redundant": "redundant",
    "unsupported": "misattributed",
    "contradicts": "contradiction",
}


class ExpectedFault(NamedTuple):
    """One fault that people found. ``span`` is its place in the answer, None where it is about the
    whole.

    ``required``: a critic must find it; else it may.
    """

    kind: str
    span: tuple[int, int] | None
    words: str
    description: str
    severity: str = "high"
    required: bool = True


class LabelledAnswer(NamedTuple):
    """One answer with what people found in it. ``right`` and ``wrong`` are sentences that are
    supported or not.
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
        """Whether nothing has to be found."""
        return not any(each.required for each in self.expected)


class TrainTestSplit(NamedTuple):
    """What is learnt from, and what is kept back to measure on; no question is in both."""

    train: tuple[LabelledAnswer, ...]
    held_out: tuple[LabelledAnswer, ...]


def from_cases(cases: Iterable[Case]) -> list[LabelledAnswer]:
    """The cases that have an answer and gold labels."""
    return [
        _of_gold(case, case.labels) for case in cases if case.labels and (case.answer or "").strip()
    ]


def from_decisions(workbench: Workbench) -> list[LabelledAnswer]:
    """The answers on which a person's decision says what is wrong, or that nothing is."""
    found: list[LabelledAnswer] = []
    page = 1
    case_filter = CaseFilter(
        states=("approved", "overridden", "rejected", "escalated"), order="oldest", size=500
    )
    while rows := workbench.cases.find(case_filter.model_copy(update={"page": page})).rows:
        for summary in rows:
            entry = workbench.reviews.current(summary.id)
            decision = entry.decision if entry else None
            if decision is not None and decision.source == "HUMAN":
                found += _of_decision(workbench, workbench.store.cases.get(summary.id), decision)
        page += 1
    return found


def split_by_question(
    cases: Sequence[LabelledAnswer], held_out: float, seed: int
) -> TrainTestSplit:
    """Two parts: ``held_out`` of the questions to measure on, drawn by ``seed``, the others to
    learn from.

    Answers to one question, or from one text, go to the same part; flawed and clean ones are spread
    over both. Raises InputError where that leaves a part empty.
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
    kept: list[LabelledAnswer] = []
    for flawed in (True, False):
        kind = sorted(
            name for name, each in members.items() if any(not case.clean for case in each) is flawed
        )
        random.Random(f"{seed} {flawed}").shuffle(kind)
        cut = round(len(kind) * held_out)
        kept += [case for name in kind[:cut] for case in members[name]]
        train += [case for name in kind[cut:] for case in members[name]]
    if not train or not kept:
        raise InputError(
            f"{len(cases)} labelled answers to {len(members)} questions can't be split",
            hint="Label more, or choose another --held-out.",
        )
    # Flawed and clean answers by turns: an optimiser that takes the first that succeed sees both
    # kinds.
    faulty, clean = (
        [case for case in train if not case.clean],
        [case for case in train if case.clean],
    )
    turns = (case for pair in zip_longest(faulty, clean) for case in pair if case is not None)
    return TrainTestSplit(tuple(turns), tuple(kept))


def digest(cases: Iterable[LabelledAnswer]) -> str:
    """SHA-256 over what was learnt from and measured on."""
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
            place_of(answer, label.text),
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
                    "redundant", place_of(answer, words), words, "not needed here", "low", False
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
        except StoreError:  # unfinished, or purged: nobody can tell what was judged
            return
        at = decision.iteration
        answer = (
            run.iterations[at - 1].answer if at and at <= len(run.iterations) else run.final_answer
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
    marked = [each.span for each in expected if each.span]
    if decision.corrected_answer:  # sentences that it no longer holds
        there = " ".join(decision.corrected_answer.split())
        for sentence in audit_citations(answer, case.evidence).sentences:
            start, end = sentence.start, sentence.end
            named = any(
                start < other_end and other_start < end for other_start, other_end in marked
            )
            if not named and " ".join(sentence.text.split()) not in there:
                expected.append(
                    ExpectedFault("changed", (start, end), sentence.text, "a reviewer changed this")
                )
    # where nobody said what is wrong, or it is of a kind that no critic is trained on, the answer
    # teaches nothing
    if expected or (decision.verdict == "approve" and not decision.reported):
        right = [
            label.text
            for label in decision.labels
            if label.target == "claim" and label.label == "supported"
        ]
        wrong = [each.words for each in expected if each.required and each.words]
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
    """The same answers with each other's labels: what an optimiser must not be able to
    learn from.
    """
    order = list(range(len(cases)))
    while len(order) > 1 and any(at == place for place, at in enumerate(order)):
        random.Random(seed).shuffle(order)
        seed += 1
    mixed = []
    for case, other in zip(cases, (cases[at] for at in order), strict=True):
        expected, end = list(other.expected), len(case.answer)
        for number, each in enumerate(expected):
            if each.span is not None and each.span[1] > end:  # the last words of a shorter answer
                expected[number] = each._replace(
                    span=(max(0, end - each.span[1] + each.span[0]), end)
                )
        mixed.append(case._replace(expected=tuple(expected), right=other.right, wrong=other.wrong))
    return mixed
