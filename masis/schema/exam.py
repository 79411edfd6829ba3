"""The result of a model's exam: how often it let a known fault pass, found one, or flagged a sound
answer.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from pydantic import Field

from masis.schema.base import Record, Share

EXAM_VERSION = "1"
"""Raised whenever the answers of the exam or their marking change. A result of another version
doesn't count.
"""

JUDGING_ROLES = ("verifier", "critic", "evaluator")
"""The roles whose word can let an answer pass. A revision is audited again, and a draft is never
accepted unread.
"""

FAULTY_ACCEPTED_MOST = 0
"""Faulty answers that a model may accept and still pass. One in 16 would be a miss rate of 6%."""
FAULTY_CONFIRMED_MOST = 0
"""Faulty passages that the verifier may call supported although nothing else stopped the answer."""
SOUND_FLAGGED_MOST = 2
"""Sound answers that a model may flag: beyond one in eight, reviewers stop believing its flags."""
FAILED_CALLS_MOST = 0.1
"""Share of calls whose reply may stay unreadable after the retries."""


class Examinee(NamedTuple):
    """Who takes the exam, or judges in an audit: what fills each judging role.

    A critic may catch what a verifier misses, so a result holds for the roles together and not for
    each model alone.

    Attributes:
        models: The model string of each judging role; of recorded replies, the model that gave
            them.
        addresses: Where each is asked. Empty: on this machine. None: not known, as of recorded
            replies.
        prompts: The version of each role's prompts; of offline roles, that of their rules.

    """

    models: dict[str, str]
    addresses: dict[str, str | None]
    prompts: dict[str, str]

    @property
    def name(self) -> str:
        """The model's name where one judges alone, else the models with their roles."""
        return joined_name(self.models)


def joined_name(models: dict[str, str]) -> str:
    """Return one model's name, or "MODEL (verifier), offline (critic, evaluator)" where several
    share the roles.
    """
    roles: dict[str, list[str]] = {}
    for role in JUDGING_ROLES:
        roles.setdefault(models[role], []).append(role)
    if len(roles) == 1:
        return next(iter(roles))
    return ", ".join(f"{model} ({', '.join(filled)})" for model, filled in roles.items())


class ExamCount(Record):
    """How many of a number of answers something is true of, with the exact 95% interval of the
    share.
    """

    count: int = Field(ge=0)
    of: int = Field(ge=0)
    low: Share
    high: Share


class ExamKindResult(Record):
    """What happened to the answers of one kind, such as ``figure`` or ``paraphrase``."""

    kind: str
    faulty: int
    found: int
    accepted: int
    sound: int
    flagged: int


class ExamResult(Record):
    """What the models of the judging roles did with the built-in exam.

    ``models``, ``addresses`` and ``prompts`` are by role: the model string, where it was asked
    (empty for what runs on this machine) and the version of its prompts. With another version of
    the prompts a model has to take the exam again.

    ``confirmed`` counts faulty passages that the verifier called supported while nothing else
    flagged the answer; such an answer was held back, if at all, by a score alone. ``failed_calls``
    are calls whose reply stayed unreadable.
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
        """The model's name where one judged alone, else the models with their roles."""
        return joined_name(self.models)

    def is_about(self, examinee: Examinee) -> bool:
        """Return whether this result counts for these models, asked at these addresses with these
        prompts.
        """
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
        """Return in words what kept the model from passing; empty where it passed."""
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
            reasons.append(f"it flagged {self.flagged.count} of {self.flagged.of} sound answers")
        if self.failed_calls > FAILED_CALLS_MOST * max(1, self.calls):
            reasons.append(f"{self.failed_calls} of {self.calls} replies couldn't be read")
        return tuple(reasons)

    @property
    def passed(self) -> bool:
        """Return whether answers that this model judged may be accepted without a person."""
        return not self.shortfalls


class ExamStanding(NamedTuple):
    """What is known of an examinee: the newest result that counts, else the newest of the same
    models that doesn't.

    ``differs`` says why that one doesn't count: another version of the exam, another address, or
    other prompts.
    """

    result: ExamResult | None = None
    earlier: ExamResult | None = None
    differs: Literal["", "exam", "address", "prompts"] = ""

    @property
    def passed(self) -> bool:
        """Return whether answers may pass without a person on the word of these models."""
        return self.result is not None and self.result.passed
