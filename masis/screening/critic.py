"""Builds the graders that the settings name, and screens abstracts in one call.

screening = masis.screen_abstracts("Does aspirin relieve headache?", abstracts)
screening.decision, screening.grades, screening.reasons
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from masis.audit.control.run_control import RunBudget, RunControl
from masis.errors import InputError, SettingsError
from masis.llm import registry
from masis.observers.observation import ScreeningStart, run_to_completion
from masis.schema.screening import Abstract, Grade, Ruling, Screening, ScreeningEvent, Thresholds
from masis.screening.grading.ensemble import Ensemble
from masis.screening.grading.grader import Grader
from masis.screening.grading.model_grader import ModelGrader
from masis.screening.grading.offline_grader import offline_grader
from masis.screening.rounds import ruling
from masis.screening.rounds.round_loop import (
    ScreeningSteps,
    new_screening_id,
    one_grade_each,
    screen,
)
from masis.screening.sources.pool import with_notices
from masis.screening.sources.records import abstract_of, validate_abstract
from masis.screening.sources.retrievers import FixedSetRetriever
from masis.settings import OFFLINE, Settings

ROLE = "grader"


def grader_names(settings: Settings) -> tuple[str, ...]:
    """Return the model strings of ``screening_graders``, in their order.

    Raises SettingsError if the list is empty or repeats a name.
    """
    names = tuple(name.strip() for name in settings.screening_graders.split(",") if name.strip())
    if not names:
        raise SettingsError(
            f"screening_graders names no grader. Use {OFFLINE!r}, or model strings with commas"
            " between."
        )
    if len(set(names)) < len(names):
        raise SettingsError("screening_graders names a grader twice. Name each grader once.")
    return names


def grader_for(settings: Settings, control: RunControl | None = None) -> Grader:
    """Return the grader that ``screening_graders`` names, an ensemble if it names several.

    ``control`` records the calls of one screening and can stop them. Raises SettingsError for a
    model that can't be used and MissingExtra for an SDK that isn't installed.
    """
    control = control or RunControl(RunBudget(call_s=settings.call_deadline_s))
    graders = tuple(
        (
            offline_grader()
            if name == OFFLINE
            else ModelGrader(
                registry.model_in_role(
                    registry.resolve(name, ROLE, settings), ROLE, control, settings
                )
            )
        )
        for name in grader_names(settings)
    )
    return graders[0] if len(graders) == 1 else Ensemble(graders)


def evaluate(
    question: str,
    abstracts: Sequence[Abstract],
    iteration: int = 0,
    *,
    grader: Grader,
    thresholds: Thresholds = ruling.DEFAULT,
    previous: Mapping[str, Grade] | None = None,
) -> tuple[tuple[Grade, ...], Ruling]:
    """Grade newly retrieved abstracts, and rule on them together with those of earlier rounds.

    Use this function as a node of a retrieval graph. It has no state, so calls may run in parallel.
    ``iteration`` is the round, from 0, which sets the required average. ``previous`` holds the
    grades from earlier rounds by abstract id. They vote too and aren't graded again. Returns a
    grade for each abstract, in the same order, and the ruling.
    """
    previous = previous or {}
    new = [abstract for abstract in with_notices(abstracts) if abstract.id not in previous]
    graded = {
        grade.abstract_id: grade for grade in (one_grade_each(grader, question, new) if new else ())
    }
    grades = tuple(graded.get(abstract.id) or previous[abstract.id] for abstract in abstracts)
    return grades, ruling.ruling(iteration, {**previous, **graded}.values(), thresholds)


def screen_abstracts(
    question: str,
    abstracts: Iterable[Abstract | Mapping[str, Any]],
    settings: Settings | None = None,
    on_event: Callable[[ScreeningEvent], None] | None = None,
) -> Screening:
    """Grade the given abstracts, and decide whether they are enough evidence to answer a question.

    All abstracts are graded in the first round. Later rounds can't find others, but they lower the
    required average in the same way as when a corpus is searched
    (``masis.screening.rounds.round_loop.screen``).

    Args:
        question: The question that the evidence should answer; not blank.
        abstracts: Abstracts, or mappings with ``id``, ``title`` and ``text`` (or ``abstract``). An
            abstract that is repeated counts once.
        settings: The graders and thresholds; the defaults unless given.
        on_event: Called with each event as it happens.

    Returns:
        The screening with a grade for every abstract. If a grader fails, its abstracts are
        unscored; the error isn't raised.

    Raises:
        InputError: The question is blank, an abstract can't be read, or two abstracts share an id.
        SettingsError: ``screening_graders`` is empty, or names a grader that can't be used.

    """
    return run_to_completion(
        _screening_steps(question, abstracts, settings or Settings()), on_event, ScreeningStart()
    )


async def screen_abstracts_async(
    question: str,
    abstracts: Iterable[Abstract | Mapping[str, Any]],
    settings: Settings | None = None,
    on_event: Callable[[ScreeningEvent], None] | None = None,
) -> Screening:
    """Run ``screen_abstracts`` in a thread, so that the event loop stays free.

    ``on_event`` is called in the event loop. If the task is cancelled, the screening stops and
    makes no further calls.
    """
    stop, loop = threading.Event(), asyncio.get_running_loop()
    settings = settings or Settings()
    control = RunControl(RunBudget(call_s=settings.call_deadline_s))

    def emit(event: ScreeningEvent) -> None:
        # The worker thread calls ``emit``, and an event loop may only be used from its own thread.
        if on_event is not None:
            loop.call_soon_threadsafe(on_event, event)

    try:
        steps = _screening_steps(
            question, abstracts, settings, cancelled=stop.is_set, control=control
        )
        return await asyncio.to_thread(run_to_completion, steps, emit, ScreeningStart())
    finally:
        # ``to_thread`` can't interrupt its thread, so a cancelled task tells it to stop.
        stop.set()
        control.cancellation.cancel()


def _screening_steps(
    question: str,
    abstracts: Iterable[Abstract | Mapping[str, Any]],
    settings: Settings,
    *,
    cancelled: Callable[[], bool] = lambda: False,
    control: RunControl | None = None,
) -> ScreeningSteps:
    if not question.strip():
        raise InputError(
            "the question is empty",
            hint="Enter the question that the evidence should answer.",
            field="question",
        )
    distinct = _distinct_abstracts(abstracts)
    return screen(
        question,
        (FixedSetRetriever(distinct),),
        grader_for(settings, control),
        settings,
        screening_id=new_screening_id(),
        limit=max(1, len(distinct)),
        is_complete_set=True,
        cancelled=cancelled,
    )


def _distinct_abstracts(abstracts: Iterable[Abstract | Mapping[str, Any]]) -> tuple[Abstract, ...]:
    """Return the abstracts without repetitions. Two different ones with one id are an error."""
    by_id: dict[str, Abstract] = {}
    for number, abstract_input in enumerate(abstracts):
        field_prefix = f"abstracts[{number}]"
        try:
            abstract = _as_abstract(abstract_input)
        except InputError as error:
            field = ".".join(filter(None, [field_prefix, error.field]))
            raise InputError(error.problem, hint=error.hint, field=field) from error
        if by_id.setdefault(abstract.id, abstract) != abstract:
            raise InputError(
                f"the id {abstract.id!r} is used by another abstract too",
                hint="Give each abstract its own id.",
                field=f"{field_prefix}.id",
            )
    return tuple(by_id.values())


def _as_abstract(abstract_input: Abstract | Mapping[str, Any]) -> Abstract:
    """Return the abstract. A mapping may call its text ``abstract``, and may omit the id."""
    if isinstance(abstract_input, Abstract):
        return abstract_input
    if not isinstance(abstract_input, Mapping):
        hint = 'Give a list of {"id": "1", "title": "...", "text": "..."}.'
        raise InputError(f"must be an abstract, not {type(abstract_input).__name__}", hint=hint)
    fields = dict(abstract_input)
    if "text" not in fields:
        fields["text"] = fields.pop("abstract", "")
    if not fields.get("id"):
        record_fields = {
            name: str(fields.get(name) or "") for name in ("title", "text", "doi", "pmid")
        }
        fields["id"] = abstract_of(**record_fields).id  # type: ignore[arg-type]  # of the names above
    return validate_abstract(fields)
