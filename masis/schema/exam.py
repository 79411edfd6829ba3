"""The result of a model's exam: known faults found or missed, and correct answers flagged."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pydantic import Field

from masis.schema.base import Record, Share

EXAM_VERSION = "1"
"""Increment it when the answers of the exam or their marking change.

Results of other versions don't count.
"""

JUDGING_ROLES = ("verifier", "critic", "evaluator")
"""The roles whose verdict can let an answer pass.

The other roles need no exam: a revision is audited again, and a draft is never accepted unread.
"""

FAULTY_ACCEPTED_MOST = 0
"""Maximum number of faulty answers a model may accept. One of 16 would be a miss rate of 6%."""
FAULTY_CONFIRMED_MOST = 0
"""Maximum number of faulty passages that the verifier may call supported in otherwise unflagged
answers.
"""
SOUND_FLAGGED_MOST = 2
"""Maximum number of sound answers that a model may flag.

If it flags more than one in eight, reviewers stop believing its flags.
"""
FAILED_CALLS_MOST = 0.1
"""The largest share of calls whose reply may stay unreadable after retries."""


class Examinee(NamedTuple):
    """The models that take the exam, or that judge in an audit, by role.

    A critic may catch what a verifier misses, so a result is valid for the roles together and not
    for each model alone.

    Attributes:
        models: The model string of each judging role. For recorded replies, the model that gave
            them.
        addresses: The address of each role's model: empty for this machine, None if unknown, as for
            recorded replies.
        prompts: The version of each role's prompts or, for offline roles, of their rules.

    """

    models: dict[str, str]
    addresses: dict[str, str | None]
    prompts: dict[str, str]

    @property
    def name(self) -> str:
        """The model's name if one judges alone, else all models with their roles."""
        return joined_name(self.models)


def joined_name(models: dict[str, str]) -> str:
    """Return the name of a model, or of several with their roles.

    Example: "MODEL (verifier), offline (critic, evaluator)".
    """
    roles: dict[str, list[str]] = {}
    for role in JUDGING_ROLES:
        roles.setdefault(models[role], []).append(role)
    if len(roles) == 1:
        return next(iter(roles))
    return ", ".join(f"{model} ({', '.join(filled)})" for model, filled in roles.items())


class ExamCount(Record):
    """A count out of a number of answers, with the exact 95% interval of the share."""

    count: int = Field(ge=0)
    of: int = Field(ge=0)
    low: Share
    high: Share


class ExamKindResult(Record):
    """The results for the answers of one kind, such as ``figure`` or ``paraphrase``."""

    kind: str
    faulty: int
    found: int
    accepted: int
    sound: int
    flagged: int


class ExamResult(Record):
    """The results of the judging roles' models in the built-in exam.

    ``models``, ``addresses`` (empty for this machine) and ``prompts`` (versions) are by role. A
    model must take the exam again if its prompts change.

    Attributes:
        confirmed: Counts faulty passages that the verifier called supported in answers that nothing
            else flagged. At most a score held such an answer back.
        failed_calls: Counts calls whose reply stayed unreadable.

    """

    models: dict[str, str]
    addresses: dict[str, str]
    prompts: dict[str, str]
    exam_version: str
    taken_at: str
    accepted: ExamCount
    found: ExamCount
    confirmed: ExamCount
    flagged: ExamCount
    kinds: tuple[ExamKindResult, ...]
    calls: int = 0
    failed_calls: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    seconds: float = Field(ge=0)

    @property
    def name(self) -> str:
        """The model's name if one judged alone, else all models with their roles."""
        return joined_name(self.models)

    def is_about(self, examinee: Examinee) -> bool:
        """Return whether the result is valid for these models, addresses and prompts."""
        return (
            self.exam_version == EXAM_VERSION
            and self.models == examinee.models
            and self.prompts == examinee.prompts
            and all(
                address in (None, self.addresses[role])
                for role, address in examinee.addresses.items()
            )
        )

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """The reasons why the model didn't pass, in words; empty if it passed."""
        reasons = []
        if self.accepted.count > FAULTY_ACCEPTED_MOST:
            reasons.append(
                f"it accepted {self.accepted.count} of {self.accepted.of} faulty answers"
            )
        if self.confirmed.count > FAULTY_CONFIRMED_MOST:
            reasons.append(
                f"it called {self.confirmed.count} of {self.confirmed.of} faulty passages supported"
            )
        if self.flagged.count > SOUND_FLAGGED_MOST:
            reasons.append(f"it flagged {self.flagged.count} of {self.flagged.of} correct answers")
        if self.failed_calls > FAILED_CALLS_MOST * max(1, self.calls):
            reasons.append(f"{self.failed_calls} of {self.calls} replies couldn't be read")
        return tuple(reasons)

    @property
    def passed(self) -> bool:
        """Whether answers that these models judged may be accepted without a person."""
        return not self.shortfalls


class ExamStanding(NamedTuple):
    """The exam results of an examinee.

    ``result`` is the newest one that counts. If there is none, ``earlier`` is the newest one of the
    same models, and ``differs`` says why it doesn't count: another version of the exam, another
    address, or other prompts.
    """

    result: ExamResult | None = None
    earlier: ExamResult | None = None
    differs: Literal["", "exam", "address", "prompts"] = ""

    @property
    def passed(self) -> bool:
        """Whether answers may pass without a person based on the verdicts of these models."""
        return self.result is not None and self.result.passed
