"""What a team tells the judge: house rules, severities and decided cases that serve as examples.

A ``JudgeContent`` is what an audit reads, and its digest identifies it. A ``JudgeVersion`` is the
named version of it that people write, try, and adopt or drop. Rules and versions name cases and
never hold their texts, so a redaction of a case reaches every prompt.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from masis.schema.base import Record
from masis.schema.case import Severity
from masis.schema.rules import IssueType
from masis.schema.storable import refuse_unstorable
from masis.schema.team import TeamRecord

MOST_RULES = 60
"""Maximum number of house rules per version. All of them are sent with each call of the critic."""

MOST_EXAMPLES = 6
"""Maximum number of example cases per rule."""

MOST_EXAMPLE_CASES = 5_000
"""Maximum number of decided cases that examples are retrieved from."""

MOST_SHOWN = 8
"""Maximum number of examples that are sent about one case, in addition to those that rules name."""

MOST_HELD_OUT = 20_000
"""Maximum number of held-out questions per version."""

CaseId = Annotated[str, Field(min_length=1, max_length=1000)]
QuestionId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
"""The identity of a question, as ``question_id`` returns it."""


def question_id(record: str) -> str:
    """Return the id under which a judge version holds out a question.

    A version holds out questions and not cases, because the answers of two systems to one question
    would otherwise be on both sides.

    Args:
        record: The id of the question's record (``Systems.question_records``).

    """
    return hashlib.sha256(record.encode("utf-8", "surrogatepass")).hexdigest()[:16]


# House rules

Force = Literal["must", "must_not", "does_not_matter"]
"""What a house rule demands of an answer."""


class ForceRow(NamedTuple):
    """The words of a force, and what they tell a judge."""

    words: str
    meaning: str


FORCES: dict[Force, ForceRow] = {
    "must": ForceRow("must", "An answer that doesn't do this has an issue"),
    "must_not": ForceRow("must not", "An answer that does this has an issue"),
    "does_not_matter": ForceRow(
        "doesn't matter", "The critic's issues about this are dropped, or lowered to the severity"
    ),
}
"""The forces of house rules."""

CheckKind = Literal["pattern", "required_citation", "banned_phrase", "maximal_length"]
"""A kind of rule that code can check without a model."""

LengthUnit = Literal["words", "characters"]


class CheckKindRow(NamedTuple):
    """A kind of check without a model.

    Attributes:
        words: Its name for people.
        meaning: What it checks.
        forces: The forces that a rule with such a check may have.
        needs_text: Whether ``CodeCheck.text`` must be given.
        needs_limit: Whether ``CodeCheck.limit`` must be given.

    """

    words: str
    meaning: str
    forces: tuple[Force, ...]
    needs_text: bool = False
    needs_limit: bool = False


CHECK_KINDS: dict[CheckKind, CheckKindRow] = {
    "pattern": CheckKindRow(
        "pattern",
        "The answer has, or doesn't have, text that matches a regular expression",
        ("must", "must_not"),
        needs_text=True,
    ),
    "required_citation": CheckKindRow(
        "required citation",
        "The answer cites a chunk with this id or source if the case has it; if none is named, any"
        " chunk",
        ("must",),
    ),
    "banned_phrase": CheckKindRow(
        "banned phrase",
        "The answer doesn't have these words, in any case and spacing",
        ("must_not",),
        needs_text=True,
    ),
    "maximal_length": CheckKindRow(
        "maximal length",
        "The answer is no longer than a number of words or characters",
        ("must",),
        needs_limit=True,
    ),
}
"""The kinds of checks without a model. ``masis/audit/house_rules.py`` has a function for each."""


class CodeCheck(Record):
    """A check of an answer without a model.

    Attributes:
        text: The regular expression, the phrase, or the id or source of the chunk to cite. Patterns
            have the syntax of RE2, which matches in linear time and so has no lookaround and no
            backreferences (https://github.com/google/re2/wiki/Syntax).
        limit: The maximal length.
        unit: What the length counts.

    """

    kind: CheckKind
    text: str = Field(default="", max_length=500)
    limit: int | None = Field(default=None, ge=1, le=1_000_000)
    unit: LengthUnit = "words"

    @model_validator(mode="after")
    def _complete(self) -> Self:
        row = CHECK_KINDS[self.kind]
        if row.needs_text and not self.text.strip():
            raise ValueError(f"a check of the kind {row.words} needs a text")
        if row.needs_limit == (self.limit is None):
            needs = "needs a limit" if row.needs_limit else "has no limit"
            raise ValueError(f"a check of the kind {row.words} {needs}")
        return self


class RuleExample(Record):
    """A decided case that shows what a rule means.

    Attributes:
        breaks: Whether its answer breaks the rule; otherwise it follows it.

    """

    case_id: CaseId
    breaks: bool = True


RuleId = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]*$", min_length=1, max_length=40)
]


class HouseRule(Record):
    """One sentence that the judge must follow.

    Attributes:
        id: A short name, by which issues and runs name the rule: ``price-currency``.
        sentence: "A price without its currency is a serious issue".
        severity: The severity of the issues that break the rule. For ``does_not_matter``, the
            severity that issues are lowered to, or None to drop them.
        issue_types: The types of issues that a rule of the force ``does_not_matter`` may drop or
            lower; all but ``safety`` if empty. It also limits what a hostile answer could talk a
            model into.
        check: Makes this a check without a model, which also runs offline.

    """

    id: RuleId
    sentence: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1000)
    ]
    force: Force
    severity: Severity | None = None
    issue_types: tuple[IssueType, ...] = Field(default=(), max_length=20)
    check: CodeCheck | None = None
    examples: tuple[RuleExample, ...] = Field(default=(), max_length=MOST_EXAMPLES)

    @field_validator("sentence")
    @classmethod
    def _storable(cls, sentence: str) -> str:
        refuse_unstorable(sentence, "the sentence")
        return sentence

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        words = FORCES[self.force].words
        if self.check is not None and self.force not in CHECK_KINDS[self.check.kind].forces:
            kind = CHECK_KINDS[self.check.kind].words
            raise ValueError(f"a {kind} can't be checked in a rule of the force {words!r}")
        if self.force == "does_not_matter":
            if self.severity in ("critical", "high"):
                raise ValueError(f"a rule of the force {words!r} can only lower to medium or low")
        else:
            if self.severity is None:
                raise ValueError(f"a rule of the force {words!r} needs a severity")
            if self.issue_types:
                raise ValueError(f"a rule of the force {words!r} has no issue types")
        return self

    def may_lower(self, type_: IssueType) -> bool:
        """Return whether this rule may drop or lower the critic's issues of a type."""
        if self.force != "does_not_matter":
            return False
        return type_ in self.issue_types if self.issue_types else type_ != "safety"


def rule_id_from(sentence: str, taken: Iterable[str] = ()) -> str:
    """Return an id for a new rule: its first words with hyphens, numbered if they are taken."""
    # Letters that an id can't have are left out, so a sentence in another script gets a number.
    words = re.findall(r"[a-z0-9]+", sentence.lower())
    base = "-".join(words[:4])[:32].strip("-") or "rule"
    used, name, number = set(taken), base, 2
    while name in used:
        name, number = f"{base}-{number}", number + 1
    return name


class SeverityRule(Record):
    """A row of the severity table: the severity of the critic's issues of one type."""

    type: IssueType
    severity: Severity
    reason: str = Field(default="", max_length=300)


# Versions


class JudgeContent(Record):
    """The guidance for a judge beyond the default prompts.

    Attributes:
        severities: Replaces the critic's own severity of issues of these types. The rule of an
            issue comes before its type.
        example_cases: Decided cases that may serve as examples. The most similar ones are shown
            about each case, but never the case itself or another one of its question.
        examples_shown: How many of them are shown about a case.
        held_out: The ids of the questions that measure this version. Their cases never serve as
            examples.
        critic: A compiled critic that reads this instead of the default one: ``dspy:careful@1``.

    """

    rules: tuple[HouseRule, ...] = Field(default=(), max_length=MOST_RULES)
    severities: tuple[SeverityRule, ...] = Field(default=(), max_length=20)
    example_cases: tuple[CaseId, ...] = Field(default=(), max_length=MOST_EXAMPLE_CASES)
    examples_shown: int = Field(default=4, ge=0, le=MOST_SHOWN)
    held_out: tuple[QuestionId, ...] = Field(default=(), max_length=MOST_HELD_OUT)
    critic: str = Field(default="", max_length=200)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        for name, keys in (
            ("rules have the same id", [rule.id for rule in self.rules]),
            ("rows are about the same type of issue", [row.type for row in self.severities]),
            ("examples are the same case", list(self.example_cases)),
            ("held-out questions are the same", list(self.held_out)),
        ):
            if len(set(keys)) < len(keys):
                raise ValueError(f"two {name}")
        return self

    @property
    def digest(self) -> str:
        """The SHA-256 of the content, as 16 hexadecimal digits. Runs record it."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]

    @property
    def is_empty(self) -> bool:
        """Whether a judge with this content is the default judge."""
        return not (self.rules or self.severities or self.critic or self.shows_examples)

    @property
    def shows_examples(self) -> bool:
        """Whether similar decided cases are shown as examples."""
        return bool(self.example_cases) and self.examples_shown > 0

    def rule(self, rule_id: str) -> HouseRule | None:
        """Return the rule with an id, or None if there is none."""
        return next((rule for rule in self.rules if rule.id == rule_id), None)

    @property
    def all_example_cases(self) -> tuple[str, ...]:
        """The cases whose texts this content may show: those of rules and those to choose from."""
        of_rules = (example.case_id for rule in self.rules for example in rule.examples)
        return tuple(dict.fromkeys((*of_rules, *self.example_cases)))


JudgeState = Literal["draft", "adopted", "dropped", "retired"]


class JudgeStateRow(NamedTuple):
    """The meaning of a state, and the states that can follow it."""

    meaning: str
    then: tuple[JudgeState, ...] = ()


JUDGE_STATES: dict[JudgeState, JudgeStateRow] = {
    "draft": JudgeStateRow(
        "It can be changed and tried; audits don't use it unless they name it",
        ("adopted", "dropped"),
    ),
    "adopted": JudgeStateRow("Audits use it. Only one version is adopted at a time", ("retired",)),
    "dropped": JudgeStateRow("It wasn't adopted, and stays on record"),
    "retired": JudgeStateRow("It was adopted earlier", ("adopted",)),
}
"""The states of a version, in the order of its life."""

JudgeName = Annotated[
    str, StringConstraints(strip_whitespace=True, pattern=r"^[\w][\w .+-]*$", max_length=80)
]
"""The name of a version, such as ``prices 2``."""


class JudgeVersion(Record):
    """A named version of the judge's guidance.

    Attributes:
        id: Identifies the version, regardless of its state.
        digest: The digest of the whole content. ``content`` as people see it leaves out examples
            whose cases aren't decided any more.
        author: Who wrote it. ``created_at`` and ``changed_at`` are the times of the first and the
            last change.
        based_on: The id of the version that it was copied from.
        decided_by: Who adopted, dropped or retired it last, at ``decided_at``.

    """

    id: str
    name: JudgeName
    state: JudgeState = "draft"
    digest: str
    author: str
    created_at: str
    changed_at: str
    content: JudgeContent = JudgeContent()
    note: str = Field(default="", max_length=2000)
    based_on: str | None = None
    decided_at: str | None = None
    decided_by: str | None = None

    @property
    def pinned(self) -> str:
        """The value of the setting ``judge`` that names exactly this content."""
        return f"{self.id}@{self.digest}"


DEFAULT_JUDGE = "none"
"""The value of the setting ``judge`` for audits by the default judge."""


class JudgeAdoption(TeamRecord):
    """The version that audits use, as the team's chain of records keeps it.

    ``judge`` and ``digest`` are empty while audits use the default judge.
    """

    kind = "judge"
    judge: str = ""
    name: str = ""
    digest: str = ""


# What an audit gets and records


class JudgeExample(Record):
    """A decided case as a prompt shows it.

    Attributes:
        rule: The id of the rule that names the example; empty if it was chosen by similarity.
        breaks: Whether the answer breaks that rule.
        verdict: The verdict that stands: ``approve``, ``override`` or ``reject``.
        reason: The reviewer's reason.

    """

    case_id: str
    query: str
    answer: str
    verdict: str
    reason: str = ""
    rule: str = ""
    breaks: bool = False


class JudgeUse(Record):
    """The judge version of a run, and the cases that it was shown as examples."""

    id: str
    name: str
    digest: str
    examples: tuple[str, ...] = ()


class JudgeBrief(Record):
    """The judge's guidance for one case: a version's content with the examples for this case."""

    use: JudgeUse
    content: JudgeContent
    examples: tuple[JudgeExample, ...] = ()


RulingEffect = Literal["dropped", "lowered", "raised"]
"""What a house rule, or a row of the severity table, did to an issue of the critic."""


class HouseRuling(Record):
    """An issue of the critic that a house rule or the severity table changed.

    Attributes:
        rule: The id of the rule; empty for the severity table.
        before: The critic's own severity.
        after: The severity that the issue has; None if it was dropped.
        description: The critic's description of the issue.

    """

    rule: str
    sentence: str
    effect: RulingEffect
    type: IssueType
    before: Severity
    after: Severity | None
    description: str
    quote: str | None = None
