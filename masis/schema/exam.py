"""The result of a model's exam: how often it let a known fault pass, found one, or flagged a sound answer."""

from __future__ import annotations

from pydantic import Field

from masis.schema.base import Record, Share

FAULTY_ACCEPTED_MOST = 0
"""Faulty answers that a model may accept and still pass. One in 16 would be a miss rate of 6%."""
FAULTY_CONFIRMED_MOST = 0
"""Faulty passages that the verifier may call supported although nothing else stopped the answer."""
SOUND_FLAGGED_MOST = 2
"""Sound answers that a model may flag: beyond one in eight, reviewers stop believing its flags."""
FAILED_CALLS_MOST = 0.1
"""Share of calls whose reply may stay unreadable after the retries."""


class ExamCount(Record):
    """How many of a number of answers something is true of, with the exact 95% interval of the share."""

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

    ``models``, ``addresses`` and ``prompts`` are by role: the model string, where it was asked (empty for what runs on
    this machine) and the version of its prompts. With another version of the prompts a model has to take the exam
    again.

    ``confirmed`` counts faulty passages that the verifier called supported while nothing else flagged the answer; such
    an answer was held back, if at all, by a score alone. ``failed_calls`` are calls whose reply stayed unreadable.
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
        """Return the model's name, or which model filled which role where they differ."""
        names = set(self.models.values()) - {"offline"} or set(self.models.values())
        if len(names) == 1:
            return names.pop()
        return ", ".join(f"{role}={model}" for role, model in self.models.items())

    def covers(self, role: str, model: str, address: str | None, prompt: str) -> bool:
        """Return whether this result is about a model in a role, asked at an address with a version of the prompt.

        None stands for any address.
        """
        return (
            self.models.get(role) == model
            and address in (None, self.addresses.get(role, ""))
            and self.prompts.get(role, "") == prompt
        )

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """Return in words what kept the model from passing; empty where it passed."""
        reasons = []
        if self.accepted.count > FAULTY_ACCEPTED_MOST:
            reasons.append(f"it accepted {self.accepted.count} of {self.accepted.of} faulty answers")
        if self.confirmed.count > FAULTY_CONFIRMED_MOST:
            reasons.append(f"it called {self.confirmed.count} of {self.confirmed.of} faulty passages supported")
        if self.flagged.count > SOUND_FLAGGED_MOST:
            reasons.append(f"it flagged {self.flagged.count} of {self.flagged.of} sound answers")
        if self.failed_calls > FAILED_CALLS_MOST * max(1, self.calls):
            reasons.append(f"{self.failed_calls} of {self.calls} replies couldn't be read")
        return tuple(reasons)

    @property
    def passed(self) -> bool:
        """Return whether answers that this model judged may be accepted without a person."""
        return not self.shortfalls
