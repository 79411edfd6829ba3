"""The issues an audit raises held against the gold findings of a case: which were found, which issues are right.

An issue finds a finding where it points at the same words of the answer and is of its kind: a fabricated, misattributed
or missing citation is found by the issue of that name, what is wrong with the content by any issue about content. A
finding about the whole answer (something left out) is found by an issue that says something is left out. What a
language model objects to has no such name, so that its issues count for every kind.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from masis.schema.audit import Issue
from masis.steps.issues import CRITIC_LOOP_TYPE

REFERENCE_RULES = {
    "fabricated_reference": "fabricated_citation",
    "misattributed_reference": "misattributed",
    "uncited_sentence": "uncited",
}
"""The issues about citations, by rule, and the gold finding of each."""
REFERENCE_TYPES = frozenset(REFERENCE_RULES.values())
LEFT_OUT = frozenset({"missing_info", "incomplete", "incomplete_reasoning"})
_BY_A_MODEL = "critic_"


class Hit(NamedTuple):
    """A finding, and whether an issue found it; or an issue, and whether a finding bears it out."""

    case: str
    content: bool
    hit: bool


class Held(NamedTuple):
    """The issues of one answer held against its gold."""

    found: tuple[Hit, ...]
    right: tuple[Hit, ...]


class _Finding(NamedTuple):
    kind: str
    span: tuple[int, int] | None


def held(case: Mapping[str, Any], issues: Sequence[Issue]) -> Held:
    """Each gold finding with whether it was found, and each issue with whether it is right."""
    answer, labels = case.get("answer") or "", case.get("labels") or {}
    findings = [_Finding(label["type"], _span(answer, label.get("text"))) for label in labels.get("findings", ())]
    needless = [_span(answer, label.get("sentence")) for label in _needless(labels)]
    name = str(case["id"])
    return Held(
        tuple(
            Hit(name, finding.kind not in REFERENCE_TYPES, any(_finds(issue, finding) for issue in issues))
            for finding in findings
        ),
        tuple(
            Hit(
                name,
                issue.rule not in REFERENCE_RULES and issue.rule != "needless_reference",
                any(_finds(issue, finding) for finding in findings)
                or (issue.rule == "needless_reference" and any(_overlap(issue, span) for span in needless)),
            )
            for issue in issues
        ),
    )


def _needless(labels: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [label for label in labels.get("citations", ()) if label["status"] == "needless"]


def _span(answer: str, text: str | None) -> tuple[int, int] | None:
    at = answer.find(text) if text else -1
    return (at, at + len(text or "")) if at >= 0 else None


def _finds(issue: Issue, finding: _Finding) -> bool:
    by_model = issue.rule.startswith(_BY_A_MODEL)
    if finding.span is None:
        told = issue.type in LEFT_OUT or CRITIC_LOOP_TYPE[issue.type] == finding.kind
        return told and (issue.source != "citations")
    if not _overlap(issue, finding.span):
        return False
    if by_model:
        return True
    if finding.kind in REFERENCE_TYPES or issue.rule in REFERENCE_RULES:
        return REFERENCE_RULES.get(issue.rule) == finding.kind
    return issue.rule != "needless_reference"


def _overlap(issue: Issue, span: tuple[int, int] | None) -> bool:
    if span is None or issue.start is None or issue.end is None:
        return False
    return issue.start < span[1] and span[0] < issue.end
