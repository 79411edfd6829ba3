"""The decisions of people and of the acceptance policy: append-only logs with a hash chain."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

from pydantic import Field, model_validator

from masis.schema.base import Record
from masis.schema.display import OneLine
from masis.schema.labels import TargetLabel
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
    "code",
    "uncode",
    "new_version",
    "guarantee",
]
"""The kind of a log entry.

``adjudication`` is the final verdict if reviewers differ. ``assign`` to ``uncode`` are about the
work on a case and decide nothing. ``code`` applies failure modes, and ``uncode`` removes them.
``new_version`` records that another case, with more evidence, replaces this one. ``guarantee``
records that a threshold of auto-acceptance was applied or ended; its case is the last one of the
drawn sample, by id.
"""
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
"""The state of a case in the workflow.

``needs_adjudication`` means that its reviewers differ. ``accepted`` is by policy; ``approved`` to
``escalated`` are by a person. ``superseded`` means that a new version replaced the case before a
person approved, corrected or rejected its answer. ``redacted`` means that its content was removed
and no person's decision is valid. ``planted`` is a copy with a planted fault for which all wanted
decisions are made, or which was withdrawn.
"""
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
"""The status of a case as people see it: the first of these that holds.

``not_audited``: there is no audit and no decision. ``failed``: the audit ended with an error or was
interrupted. ``no_answer``: the system refused or its call failed, so there was nothing to audit.
``decided``: by a person, or replaced or redacted. ``planted``: a copy with a planted fault that
people have decided, which isn't a case of the desk. ``waits``: for another reviewer, an
adjudication or the follow-up of an escalation. ``wrong``: a person must look. ``not_confirmed``:
nothing was found wrong, but the answer couldn't be confirmed. ``nothing_found``: includes
auto-accepted cases. ``to_review`` replaces the audit's result if a policy hides it; no case is
stored with it.
"""


SHOWN_UNKNOWN = "unknown"
"""Marks in ``Decision.machine_shown`` that it isn't known what the reviewer saw.

An empty ``machine_shown`` means that the reviewer saw nothing of the machine's verdict. Only such a
decision is blind.
"""


IMPORTED = "imported"
"""Key in an entry's ``extra``: where a decision comes from that was made in another database."""

AdjudicationCause = Literal["slip", "ambiguous", "gap"]
"""Why reviewers differed. ``masis/services/decision_rules.py`` says what the codes mean."""

LONGEST_SENTENCE = 500
"""The longest sentence that is proposed for the rubric, in characters."""


BATCH = "batch"
"""Key in an entry's ``extra``: the id of the batch whose action made the entry."""

LABELS_ADDED = "labels_added"
"""Key in an entry's ``extra``: how many of its last labels a batch added to the decision before."""


class SubjectDigests(Record):
    """SHA-256 digests of an entry's subject, as stored when the entry was made.

    ``docs/running.md`` says which texts they cover.

    Attributes:
        run: None if the entry names no finished run.
        answer: None if the entry names no finished run.
        cases: The number of cases at that time.
        team: The digest of the policies, rubrics and label types set at that time.

    """

    case: str
    run: str | None = None
    answer: str | None = None
    cases: int = 0
    team: str = ""


class Decision(Record):
    """A decision about one run, as submitted; the store adds its place in the chain and ``about``.

    The requirements of each verdict (a reason, a real correction, serious issues that were seen)
    are checked when a decision is recorded.

    Attributes:
        machine_shown: The parts of the machine's verdict that the person saw (``scores``,
            ``marks``, ...), or ``SHOWN_UNKNOWN``.
        token: Makes a repeated submission harmless.
        undoes: The entry that an undo reverses.
        policy: Set by the store if several reviewers decide the case.
        note: Also the text of a comment.
        newer_case: The id of the new version.
        rubric_scores: The team's own scores, in the version ``versions["team_rubric"]``.
        labels: Types of reported issues are those of version ``versions["label_types"]``.
        cause: Why the reviewers differed; only in an adjudication.
        rubric_sentence: A sentence that is proposed for the rubric; only with the cause ``gap``.
        codes: The codes of failure modes, in version ``versions["codebook"]`` of the codebook.
        observation: The place of what was coded (``CaseObservation.place``); None for the whole
            case.
        coded_by: The person whose codes an ``uncode`` removes; by default the reviewer.
        queue: The id of the named queue in which the decision was made; None for the first queue.
        held_by: Set by the store: the other queues in which the case then waited for independent or
            blind decisions. The decision doesn't change the case's state until they have them.

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
    cause: AdjudicationCause | None = None
    rubric_sentence: str = Field(default="", max_length=LONGEST_SENTENCE)
    codes: tuple[str, ...] = ()
    observation: str | None = None
    coded_by: str | None = None
    queue: str | None = Field(default=None, exclude_if=lambda queue: queue is None)
    held_by: tuple[str, ...] = Field(default=(), exclude_if=lambda queues: not queues)
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
            raise ValueError("an assignment needs a reviewer")
        if self.kind in ("tag", "untag") and not self.tags:
            raise ValueError("name a tag")
        if (self.kind in ("code", "uncode")) != bool(self.codes):
            raise ValueError("only entries of the kinds code and uncode name failure modes")
        if self.kind == "comment" and not self.note.strip():
            raise ValueError("a comment needs text")
        if (self.kind == "new_version") != (self.newer_case is not None):
            raise ValueError("only an entry of the kind new_version names the newer case")
        if self.cause is not None and self.kind != "adjudication":
            raise ValueError("only a final verdict has a cause")
        if self.rubric_sentence and self.cause != "gap":
            raise ValueError("a sentence for the rubric needs the cause gap")
        if self.kind == "undo" and self.undoes is None:
            raise ValueError("an undo needs the entry that it reverses")
        return self


class ChainedEntry(Record):
    """The place of an entry in a log.

    ``digest`` is the SHA-256 over the sequence number, the time, the payload's digest and the
    previous digest, so the chain still verifies after a payload is redacted. For viewers who may
    not know whether others wrote before, ``seq`` is 0 and ``previous`` and ``digest`` are empty.
    """

    seq: int
    id: str
    at: str
    payload_digest: str
    previous: str
    digest: str


class LogEntry(OneLine, ChainedEntry):
    """One entry of the decision log; ``decision`` is None if it was redacted."""

    decision: Decision | None

    def __repr__(self) -> str:
        if (decision := self.decision) is None:
            return f"<LogEntry {self.id}, {self.at}: redacted>"
        reason = f": {shorten(decision.reason, 80)}" if decision.reason else ""
        action = decision.verdict or decision.kind
        return (
            f"<LogEntry {self.id}, {self.at}: {action} on {decision.case_id[:80]!r} by"
            f" {decision.reviewer}{reason}>"
        )


class LogCheck(Record):
    """The result of verifying the log; ``broken`` names each entry that doesn't fit, and why."""

    length: int
    head: str
    redacted: int
    broken: tuple[str, ...]
    set_back: tuple[str, ...] = ()
    """Entries dated before their predecessor, which can also mean that a clock was set back."""

    @property
    def intact(self) -> bool:
        """Whether every entry fits the one before it."""
        return not self.broken


class SubjectCheck(Record):
    """The result of comparing entries with the cases and runs they are about.

    ``checked`` counts entries with matching digests. ``not_checkable`` counts the entries that
    can't be checked but are no problem, by reason.
    """

    checked: int
    not_checkable: dict[str, int]
    broken: tuple[str, ...]


class SignatureCheck(Record):
    """The result of checking both logs' signatures with a key; ``signed`` counts the valid ones."""

    signed: int
    broken: tuple[str, ...]


# The answer that a decision is about, and the one that is valid after it.


def answer_digest(answer: str) -> str:
    """Return the digest that identifies an answer on a page."""
    return hashlib.sha256(answer.encode("utf-8", "surrogatepass")).hexdigest()


def answer_name(iteration: int | None, *, drafted: bool = False) -> str:
    """Return the name of an answer by its iteration, from 1; None if no audit was made.

    ``drafted`` says that the audit wrote the first answer.
    """
    if iteration is not None and iteration > 1:
        return f"revision {iteration}"
    return "the drafted answer" if drafted else "the original answer"


REVISION = "revision"
"""Key in an entry's ``extra``: the revision of the audit that is valid after it.

It holds its ``number`` and whether the audit ``suggested`` it. The revision was approved, or taken
as the correction word for word.
"""


def decision_outcome(decision: Decision) -> str:
    """Say which answer is valid after a decision, or "" if none is."""
    if decision.verdict not in ("approve", "override"):
        return ""
    done = "replaced" if decision.verdict == "override" else "approved"
    return f"{done} {used_answer(decision) or 'as it stands'}"


def used_answer(decision: Decision) -> str:
    """Return the answer that a decision uses, as it follows its verdict.

    It is "" for the original answer and if no answer is valid.
    """
    if decision.verdict not in ("approve", "override"):
        return ""
    revision = decision.extra.get(REVISION)
    if isinstance(revision, dict):
        suggested = revision.get("suggested")
        name = "the suggested revision" if suggested else f"revision {revision.get('number')}"
        return f"with {name}"
    if decision.verdict == "override":
        return "with own correction"
    is_revision = (decision.iteration or 1) > 1
    return f"with {answer_name(decision.iteration)}" if is_revision else ""


def decided_about(decision: Decision) -> str:
    """Return the name of the answer that a decision is about, or "" without a verdict."""
    if decision.verdict is None:
        return ""
    answer = decision.extra.get("answer")
    if isinstance(answer, str) and answer:
        return answer
    return answer_name(decision.iteration)


def settled_answer(decision: Decision | None, run: Run | None) -> str | None:
    """Return the answer that is valid after a decision: the corrected one, else the reviewed one.

    A decision without an iteration is about the original answer. Returns None if there is no
    decision, if it rejects or escalates, or if it undoes or redacts another.
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
