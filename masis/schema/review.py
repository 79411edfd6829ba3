"""What people (and the acceptance policy) decide: an append-only log whose entries form a hash
chain.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal

from pydantic import Field, model_validator

from masis.schema.base import Record
from masis.schema.case import Severity
from masis.schema.display import OneLine
from masis.schema.run import Run
from masis.schema.team import CasePolicy
from masis.schema.wording import shorten

Verdict = Literal["approve", "override", "reject", "escalate"]
EntryKind = Literal[
    "decision",
    "undo",
    "policy_accept",
    "redaction",
    "adjudication",
    "assign",
    "unassign",
    "tag",
    "untag",
    "skip",
    "comment",
    "new_version",
    "guarantee",
]
"""``adjudication``: the final verdict where reviewers differ. ``assign`` to ``comment`` are about
the work on a case and decide nothing. ``new_version``: another case, with more evidence, takes the
place of this one. ``guarantee``: a threshold of auto-acceptance was applied or ended; its case is
the last of the drawn sample, by id."""
EntrySource = Literal["HUMAN", "LLM_JUDGE", "CODE"]
CaseState = Literal[
    "new",
    "running",
    "interrupted",
    "needs_review",
    "needs_adjudication",
    "accepted",
    "approved",
    "overridden",
    "rejected",
    "escalated",
    "superseded",
    "redacted",
    "planted",
]
Standing = Literal[
    "not_audited",
    "failed",
    "no_answer",
    "decided",
    "planted",
    "waits",
    "wrong",
    "not_confirmed",
    "nothing_found",
    "to_review",
]
"""Where a case stands, for people: exactly one, the first that holds. ``not_audited``: by no audit,
and no decision stands; ``failed``: its audit ended with an error or was interrupted; ``no_answer``:
the system refused or its call failed, so that there was nothing to audit; ``decided`` by a person,
or replaced or redacted; ``waits`` for another reviewer, adjudication or what an escalation asked
for; ``wrong``: something must be looked at; ``not_confirmed``: nothing was found wrong, but it
could not be confirmed; ``nothing_found``, the auto-accepted among them. ``planted``: a copy with a
planted fault that people have decided, which is no case of the desk. ``to_review`` stands in place
of what the audit found where a policy hides that; no case is stored with it."""
"""Where a case stands: ``needs_adjudication`` where its reviewers differ; ``accepted`` by policy;
``approved`` to ``escalated`` by a person; ``superseded`` where a new version took its place and no
person has approved, corrected or rejected its answer; ``redacted`` where its content was removed
and no person's decision stands; ``planted`` where it is a copy with a planted fault, and all
decisions that it wants are made, or it was withdrawn."""


SHOWN_UNKNOWN = "unknown"
"""In ``Decision.machine_shown``: nobody knows what the reviewer saw. An empty ``machine_shown``
says that they saw nothing of the machine's verdict, and only such a decision is blind."""


class TargetLabel(Record):
    """A person's label on one sentence, reference, claim or span of the audited answer, or on the
    whole of it.

    ``text`` are the words from ``start`` to ``end`` (characters of the answer decided about); a
    label on the whole answer has none of the three. A label with a ``severity`` reports an issue:
    ``label`` is then one of the team's label types, in the version that
    ``Decision.versions["label_types"]`` names. One without corrects or confirms what the audit
    said.
    """

    target: Literal["sentence", "reference", "claim", "span", "answer"]
    start: int | None = None
    end: int | None = None
    text: str = ""
    label: str
    note: str = ""
    severity: Severity | None = None

    @model_validator(mode="after")
    def _check_place(self) -> TargetLabel:
        if self.target == "answer":
            if self.severity is None:
                raise ValueError(
                    "a label on the whole answer reports an issue: it needs a severity"
                )
            if self.start is not None or self.end is not None or self.text:
                raise ValueError("a label on the whole answer quotes no words and has no place")
        elif self.start is None or self.end is None:
            raise ValueError(f"a label on a {self.target} needs start and end")
        if self.severity is not None and self.target not in ("span", "answer"):
            raise ValueError("an issue is reported on a span or on the whole answer")
        return self

    @property
    def reports(self) -> bool:
        """Whether this label reports an issue that the audit missed."""
        return self.severity is not None


class SubjectDigests(Record):
    """SHA-256 digests of what an entry is about, as stored when it was made (docs/running.md says
    over which texts).

    ``run`` and ``answer`` are None where the entry names no finished run. ``cases`` is how many
    cases there were, ``team`` the digest of the policies, rubrics and label types that had been
    set.
    """

    case: str
    run: str | None = None
    answer: str | None = None
    cases: int = 0
    team: str = ""


class Decision(Record):
    """What someone decided about one run, as given in; the store adds its place in the chain and
    ``about``.

    What a verdict needs (a reason, a correction that corrects, serious issues that were seen) is
    checked where it is recorded, by ``masis/services/decision_rules.py``.

    ``machine_shown`` names what of the machine's verdict was visible to the person (``scores``,
    ``marks``, ...; ``SHOWN_UNKNOWN`` where that is not known); ``token`` makes a repeated submit
    harmless. ``undoes`` names the entry an undo takes back. ``policy`` is set by the store where
    several reviewers decide the case. ``assignees`` and ``tags`` are what entries of these kinds
    are about; a comment stands in ``note``; ``newer_case`` is the id of a new version.
    ``rubric_scores`` are the team's own, by version ``versions["team_rubric"]``; types of reported
    issues (``labels``) are those of version ``versions["label_types"]``.
    """

    kind: EntryKind = "decision"
    source: EntrySource = "HUMAN"
    reviewer: str = Field(min_length=1, max_length=200)
    case_id: str
    run_id: str | None
    iteration: int | None = None
    verdict: Verdict | None = None
    reason: str = ""
    note: str = ""
    corrected_answer: str | None = None
    labels: tuple[TargetLabel, ...] = ()
    machine_shown: tuple[str, ...] = ()
    undoes: str | None = None
    token: str | None = None
    versions: dict[str, str] = Field(default_factory=dict)
    extra: dict[str, Any] = Field(default_factory=dict)
    policy: CasePolicy | None = None
    assignees: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    rubric_scores: dict[str, int | str] = Field(default_factory=dict)
    newer_case: str | None = None
    about: SubjectDigests | None = None
    """Set by the store; None in redactions."""

    @property
    def reported(self) -> tuple[TargetLabel, ...]:
        """The issues that the reviewer reports in the answer."""
        return tuple(label for label in self.labels if label.reports)

    @model_validator(mode="after")
    def _complete(self) -> Decision:
        if self.kind in ("decision", "adjudication") and self.verdict is None:
            raise ValueError("a decision needs a verdict: approve, override, reject or escalate")
        if self.kind in ("assign", "unassign") and not self.assignees:
            raise ValueError("an assignment names a reviewer")
        if self.kind in ("tag", "untag") and not self.tags:
            raise ValueError("name a tag")
        if self.kind == "comment" and not self.note.strip():
            raise ValueError("a comment needs words")
        if (self.kind == "new_version") != (self.newer_case is not None):
            raise ValueError("an entry of a new version, and no other, names the newer case")
        if self.kind == "undo" and self.undoes is None:
            raise ValueError("an undo names the entry it takes back")
        return self


class ChainedEntry(Record):
    """The place of an entry in a log.

    ``digest`` = SHA-256 over the sequence number, the time, the payload's digest and the digest
    before, so that a payload can be redacted and the chain still verifies. ``seq`` is 0, and
    ``previous`` and ``digest`` are empty, for who may not know whether others wrote before.
    """

    seq: int
    id: str
    at: str
    payload_digest: str
    previous: str
    digest: str


class LogEntry(OneLine, ChainedEntry):
    """One entry of the decision log; ``decision`` is None where it was redacted."""

    decision: Decision | None

    def __repr__(self) -> str:
        if (given := self.decision) is None:
            return f"<LogEntry {self.id}, {self.at}: redacted>"
        why = f": {shorten(given.reason, 80)}" if given.reason else ""
        what = given.verdict or given.kind
        return (
            f"<LogEntry {self.id}, {self.at}: {what} on {given.case_id[:80]!r} by"
            f" {given.reviewer}{why}>"
        )


class LogCheck(Record):
    """What verifying the log found; ``broken`` names each entry that doesn't fit, and why."""

    length: int
    head: str
    redacted: int
    broken: tuple[str, ...]
    set_back: tuple[str, ...] = ()
    """Entries that are dated before the one before them, which a clock that was set
    back does, too.
    """

    @property
    def intact(self) -> bool:
        """Whether every entry fits the one before it."""
        return not self.broken


class SubjectCheck(Record):
    """What comparing entries with the cases and runs they are about found.

    ``checked`` entries carry digests that fit; ``not_checkable`` counts the others that are no
    problem, by reason.
    """

    checked: int
    not_checkable: dict[str, int]
    broken: tuple[str, ...]


class SignatureCheck(Record):
    """What checking the signatures of both logs with a key found; ``signed`` counts the
    valid ones.
    """

    signed: int
    broken: tuple[str, ...]


# Which answer was decided about, and which one stands once somebody has decided.


def answer_digest(answer: str) -> str:
    """Return the digest by which a page says which answer it shows."""
    return hashlib.sha256(answer.encode("utf-8", "surrogatepass")).hexdigest()


def answer_name(iteration: int | None, *, drafted: bool = False) -> str:
    """Name an answer by its iteration (from 1; None where nothing was audited).

    ``drafted`` says that the first answer came from the audit, not with the case.
    """
    if iteration is not None and iteration > 1:
        return f"revision {iteration}"
    return "the drafted answer" if drafted else "the original answer"


def decided_about(decision: Decision) -> str:
    """Name the answer that a decision is about; empty where it carries no verdict on one."""
    if decision.verdict is None:
        return ""
    named = decision.extra.get("answer")
    if isinstance(named, str) and named:
        return named
    return answer_name(decision.iteration)


def settled_answer(decision: Decision | None, run: Run | None) -> str | None:
    """The answer that a decision lets stand: the corrected one, else the one decided about.

    A decision that names no iteration is about the original answer. None where nothing is decided,
    where the decision rejects or escalates, and where it takes one back.
    """
    if (
        decision is None
        or decision.kind in ("undo", "redaction")
        or decision.verdict in ("reject", "escalate")
    ):
        return None
    if decision.corrected_answer is not None:
        return decision.corrected_answer
    if run is None:
        return None
    at = decision.iteration or 1
    return run.iterations[at - 1].answer if 1 <= at <= len(run.iterations) else run.final_answer
