"""Systems: list those whose answers are stored, and describe them."""

from __future__ import annotations

from typing import NamedTuple

from masis.schema.actor import Actor
from masis.schema.systems import UNNAMED, System, SystemDetails
from masis.services.access import Service, requires
from masis.services.reviews import name_of
from masis.store.reviews.preferences import AnswerOfSystem

DESCRIBE_SYSTEMS = "describe systems: their model, prompt, version and date"


class NamedAnswers(NamedTuple):
    """The system that wrote an answer, and the other systems' answers to the question.

    ``system`` is "" and ``others`` empty if the answer has no system.
    """

    system: str = ""
    others: tuple[AnswerOfSystem, ...] = ()


class SystemService(Service):
    """The use cases of systems."""

    @requires("read")
    def all(self, actor: Actor) -> tuple[System, ...]:
        """Return the systems with answers here, in the order in which they were added."""
        return self._store.systems.all()

    @requires("read")
    def get(self, actor: Actor, name: str) -> System:
        """Return a system. Raises UnknownRecord."""
        return self._store.systems.get(name)

    @requires("read")
    def answers_beside(self, actor: Actor, case_id: str) -> NamedAnswers:
        """Return the system of a case, and the other systems' answers to its question.

        Callers ask ``PreferenceService.hides_system`` first, because a policy can hide the names.

        Raises:
            UnknownRecord: There is no such case.

        """
        system = self._store.cases.get(case_id).system
        question = self._store.preferences.question_of(case_id)
        answers = self._store.preferences.answers(question)
        if system == UNNAMED and len(answers) < 2:
            return NamedAnswers()
        return NamedAnswers(system, tuple(row for row in answers if row.system != system))

    @requires("audit", DESCRIBE_SYSTEMS)
    def describe(self, actor: Actor, name: str, details: SystemDetails) -> System:
        """Replace the model, prompt, version and date of a system, and return it.

        Raises:
            UnknownRecord: There is no such system.
            InputError: The actor has no name.
            NotAllowed: The actor's role doesn't allow it.

        """
        return self._store.systems.change(name, details, name_of(actor))
