"""A decorator that audits the answers of a function.

    @masis.audited(on_flag="raise", database="audits.db")
    def answer(question, evidence): ...

The function is called and answers as before. Its answer is audited against the evidence that it
received or returned. The result goes to ``on_result`` and to a database, and ``on_flag`` decides
what happens if something is wrong with the answer. An audit that fails is logged and reported to
``on_error``; it never blocks the answer.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import inspect
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, overload

from masis.api import audits
from masis.api.roles import check_models
from masis.audit.acceptance import assess
from masis.audit.control.concurrency import start_in_thread
from masis.errors import AnswerRejected, InputError
from masis.pipeline.documents import evidence as evidence_of
from masis.schema.case import Case, check_case
from masis.schema.rules import MUST_LOOK
from masis.schema.run import ReviewReason, Run
from masis.services import Actor, Workbench
from masis.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])
OnFlag = Literal["record", "revise", "raise"]
log = logging.getLogger("masis.pipeline")

ACTOR = Actor(name="masis.audited")
"""The actor that stores the audits of decorated functions."""

QUESTIONS = ("question", "query", "user_query", "prompt")
EVIDENCE = ("evidence", "sources", "documents", "docs", "chunks", "context")
ANSWERS = ("answer", "output", "result", "text", "response")
FLAGS: frozenset[str] = MUST_LOOK
"""Reasons for review that flag an answer: something is wrong or unsafe. What could not be judged
doesn't flag it.
"""


@dataclass(frozen=True)
class Audited:
    """The result of auditing one answer.

    ``reasons`` are the reasons of the original answer that are in ``flag_on``. ``revised`` is the
    run's better answer, or None if there is none.
    """

    question: str
    answer: str
    run: Run
    reasons: tuple[ReviewReason, ...] = ()

    @property
    def flagged(self) -> bool:
        """Whether something is wrong with the answer."""
        return bool(self.reasons)

    @property
    def revised(self) -> str | None:
        """The better answer that the audit proposes and has audited too, or None."""
        return self.run.final_answer if self.run.best else None


@dataclass(frozen=True)
class _Rules:
    """The options for auditing one function."""

    question: str | None
    evidence: str | None
    answer: str | None
    on_flag: OnFlag
    flag_on: frozenset[str]
    on_result: Callable[[Audited], object] | None
    on_error: Callable[[Exception], object] | None
    settings: Settings
    workbench: Workbench | None
    wait: bool
    signature: inspect.Signature = field(default_factory=inspect.Signature)


@overload
def audited(function: F) -> F:  # noqa: D418 (a public name says what it is)
    """Audit a function with default arguments."""


@overload
def audited(  # noqa: D418
    *,
    question: str | None = None,
    evidence: str | None = None,
    answer: str | None = None,
    on_flag: OnFlag = "record",
    flag_on: Collection[str] = FLAGS,
    on_result: Callable[[Audited], object] | None = None,
    on_error: Callable[[Exception], object] | None = None,
    settings: Settings | None = None,
    database: str | Path | Workbench | None = None,
    wait: bool = True,
) -> Callable[[F], F]:
    """Return a decorator with these arguments."""


def audited(
    function: Any = None,
    *,
    question: str | None = None,
    evidence: str | None = None,
    answer: str | None = None,
    on_flag: OnFlag = "record",
    flag_on: Collection[str] = FLAGS,
    on_result: Callable[[Audited], object] | None = None,
    on_error: Callable[[Exception], object] | None = None,
    settings: Settings | None = None,
    database: str | Path | Workbench | None = None,
    wait: bool = True,
) -> Any:
    """Audit every answer of a function: plain, async, or a generator that streams its answer in
    pieces.

    ``question`` and ``evidence`` name parameters of the function. If they aren't given, the first
    parameter with a common name is used (QUESTIONS, EVIDENCE). If there is none, the question is
    the first parameter, and the function returns the evidence with the answer, as a pair (answer,
    evidence) or in a mapping under a common name.

    Args:
        function: The function, if the decorator has no arguments.
        question: The parameter that holds the question.
        evidence: The parameter that holds the evidence.
        answer: The key of a returned mapping that holds the text.
        on_flag: What to do if the answer is flagged: "record" and return it anyway, "raise"
            AnswerRejected, or "revise", which returns the revision if the audit made a better one.
        flag_on: The reasons that flag an answer (codes of ReviewReason).
        on_result: Called with each audit.
        on_error: Called with the error of an audit that failed.
        settings: The settings of the audit.
        database: Where case and run are stored.
        wait: With False, the answer is returned at once and audited on a thread.

    Raises:
        InputError: The arguments contradict each other or don't fit the function. Raised when it
            is decorated.
        SettingsError: A model can't be asked. Raised when the function is decorated.
        MissingExtra: An SDK is not installed. Raised when the function is decorated.

    """
    settings = settings or Settings()
    check_models(settings)
    _check_flags(on_flag, flag_on)
    if not wait and on_flag != "record":
        raise InputError(
            f"is {on_flag!r} with wait=False",
            hint="Wait for the audit, or record only.",
            field="on_flag",
        )
    workbench = (
        database
        if isinstance(database, Workbench) or database is None
        else Workbench.open(Path(database), settings)
    )
    rules = _Rules(
        question,
        evidence,
        answer,
        on_flag,
        frozenset(flag_on),
        on_result,
        on_error,
        settings,
        workbench,
        wait,
    )
    return (
        _wrap_function(function, rules)
        if function is not None
        else lambda decorated: _wrap_function(decorated, rules)
    )


def _check_flags(on_flag: str, flag_on: Collection[str]) -> None:
    """Raise InputError for an unknown word, because a gate with a typo would let
    everything pass.
    """
    if on_flag not in get_args(OnFlag):
        raise InputError(
            f"is {on_flag!r}", hint=f"Give one of {', '.join(get_args(OnFlag))}.", field="on_flag"
        )
    codes = get_args(ReviewReason.model_fields["code"].annotation)
    # A text is a collection too, of characters.
    if isinstance(flag_on, str):
        raise InputError(
            f"is the text {flag_on!r}, not a list", hint="Put it into a list.", field="flag_on"
        )
    if unknown := sorted(map(str, set(flag_on) - set(codes))):
        raise InputError(
            f"has no reason {unknown[0]!r}", hint=f"There are: {', '.join(codes)}.", field="flag_on"
        )


def _wrap_function(function: Any, rules: _Rules) -> Any:
    rules = _bind_rules(function, rules)
    # Check the function and not its result, so that the wrapper is of the same kind and frameworks
    # that inspect it still work.
    if inspect.isasyncgenfunction(function):
        return _of_async_generator(function, rules)
    if inspect.isgeneratorfunction(function):
        return _of_generator(function, rules)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def audited_async(*args: Any, **kwargs: Any) -> Any:
            returned = await function(*args, **kwargs)
            return await _in_thread(lambda: _value_to_return(returned, rules, args, kwargs), rules)

        return audited_async

    @functools.wraps(function)
    def audited_sync(*args: Any, **kwargs: Any) -> Any:
        return _value_to_return(function(*args, **kwargs), rules, args, kwargs)

    return audited_sync


def _of_generator(function: Any, rules: _Rules) -> Any:
    @functools.wraps(function)
    def audited_generator(*args: Any, **kwargs: Any) -> Iterator[Any]:
        pieces = []
        for piece in function(*args, **kwargs):
            pieces.append(piece)
            yield piece
        _value_to_return(_join_pieces(pieces), rules, args, kwargs)

    return audited_generator


def _of_async_generator(function: Any, rules: _Rules) -> Any:
    @functools.wraps(function)
    async def audited_async_generator(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        pieces = []
        async for piece in function(*args, **kwargs):
            pieces.append(piece)
            yield piece
        await _in_thread(lambda: _value_to_return(_join_pieces(pieces), rules, args, kwargs), rules)

    return audited_async_generator


def _join_pieces(pieces: list[Any]) -> Any:
    return "".join(pieces) if all(isinstance(piece, str) for piece in pieces) else pieces


async def _in_thread(work: Callable[[], Any], rules: _Rules) -> Any:
    """Do the work on a thread, so that the event loop continues, or directly if nothing waits."""
    return await asyncio.wrap_future(start_in_thread(work, "audited")) if rules.wait else work()


def _bind_rules(function: Any, rules: _Rules) -> _Rules:
    """Return the rules with the names of the function's own parameters.

    Raises:
        InputError: The function has no such parameter.

    """
    # Read this once, when the function is decorated, because inspecting takes longer than calling.
    signature = inspect.signature(function)
    names = [name for name in signature.parameters if name not in ("self", "cls")]
    for name in (rules.question, rules.evidence):
        if name is not None and name not in names:
            raise InputError(
                f"has no parameter {name!r}",
                hint=f"It has: {', '.join(names) or 'none'}.",
                field=_function_name(function),
            )
    if not names:
        raise InputError(
            "has no parameter for the question",
            hint="Add one, as its first parameter.",
            field=_function_name(function),
        )
    is_streaming = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    # The caller has already received the answer when it is audited.
    if is_streaming and rules.on_flag == "revise":
        raise InputError(
            "streams its answer",
            hint="A streamed answer can't be revised. Use record or raise.",
            field="on_flag",
        )
    question = rules.question or next((name for name in QUESTIONS if name in names), names[0])
    evidence = rules.evidence or next((name for name in EVIDENCE if name in names), None)
    if is_streaming and evidence is None:
        hint = "Name the parameter that holds its evidence: audited(evidence=...)."
        raise InputError("streams its answer", hint=hint, field=_function_name(function))
    return _Rules(
        **{**vars(rules), "question": question, "evidence": evidence, "signature": signature}
    )


def _function_name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _value_to_return(
    returned: Any, rules: _Rules, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Return the caller's result for the function's return value."""
    if not rules.wait:
        start_in_thread(lambda: _audit_safely(returned, rules, args, kwargs), "audited")
        return returned
    audit = _audit_safely(returned, rules, args, kwargs)
    if audit is None or not audit.flagged or rules.on_flag == "record":
        return returned
    if rules.on_flag == "raise":
        reasons = " ".join(reason.message for reason in audit.reasons)
        raise AnswerRejected(f"The answer was rejected: {reasons}", audit=audit)
    return returned if audit.revised is None else _with_revision(returned, rules, audit.revised)


def _audit_safely(
    returned: Any, rules: _Rules, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Audited | None:
    """Return the audit and pass it to ``on_result``. If it failed, log and report the error and
    return None.
    """
    try:
        audit = _audit_returned(returned, rules, args, kwargs)
    except Exception as error:  # noqa: BLE001 (it is reported, and the answer is returned)
        log.warning("an answer could not be audited: %s: %s", type(error).__name__, error)
        _notify(rules.on_error, error)
        return None
    _notify(rules.on_result, audit)
    return audit


def _notify(listener: Callable[[Any], object] | None, value: object) -> None:
    if listener is None:
        return
    try:
        listener(value)
    except Exception:
        log.exception("the callback for an audit failed")


def _audit_returned(
    returned: Any, rules: _Rules, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Audited:
    bound = rules.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    question = str(bound.arguments[rules.question or ""])
    text, returned_evidence = _text_and_evidence(returned, rules)
    evidence = returned_evidence if rules.evidence is None else bound.arguments[rules.evidence]
    chunks = evidence_of([evidence] if isinstance(evidence, str) else evidence)
    # The id is a digest of the content, so that the same answer is stored as one case.
    content = check_case(Case(id="-", query=question, answer=text, evidence=chunks))
    digest = hashlib.sha256(content.digest().encode()).hexdigest()
    case = content.model_copy(update={"id": f"answered-{digest[:16]}"})
    settings = rules.settings
    if rules.on_flag != "revise":
        # Only "revise" uses a revision, so the others don't pay for one.
        settings = settings.model_copy(update={"max_iterations": 1})
    if rules.workbench is None:
        run = audits.run_audit(case, settings)
    else:
        rules.workbench.cases.add(ACTOR, [case])
        run = rules.workbench.audits.audit(ACTOR, case, settings=settings)
    # Assess the original answer, even if the audit chose a revision.
    assessed = assess(
        run.iterations[:1], case, "no_issues", settings, unexamined=run.acceptance.unexamined
    )
    return Audited(
        question,
        text,
        run,
        tuple(reason for reason in assessed.reasons if reason.code in rules.flag_on),
    )


def _text_and_evidence(returned: Any, rules: _Rules) -> tuple[str, Any]:
    """Return the text of a function's result, and the evidence that came with it."""
    returned_evidence = None
    if isinstance(returned, tuple) and len(returned) == 2 and rules.evidence is None:
        returned, returned_evidence = returned
    if isinstance(returned, Mapping):
        if rules.evidence is None and returned_evidence is None:
            returned_evidence = next(
                (returned[key] for key in (*EVIDENCE, "source_documents") if key in returned), None
            )
        keys = (rules.answer,) if rules.answer else ANSWERS
        returned = next((returned[key] for key in keys if isinstance(returned.get(key), str)), None)
    elif not isinstance(returned, str):
        returned = next(
            (
                text
                for key in ("content", *ANSWERS)
                if isinstance(text := getattr(returned, key, None), str)
            ),
            None,
        )
    if not isinstance(returned, str):
        raise InputError(
            "is not a text",
            hint="Return a text, or name its key: audited(answer=...).",
            field="answer",
        )
    return returned, returned_evidence


def _with_revision(returned: Any, rules: _Rules, revised: str) -> Any:
    """Return the function's result with the revision as its text; unchanged if it has no place for
    it.
    """
    if isinstance(returned, str):
        return revised
    if isinstance(returned, tuple) and len(returned) == 2 and rules.evidence is None:
        return _with_revision(returned[0], rules, revised), returned[1]
    if isinstance(returned, Mapping):
        keys = (rules.answer,) if rules.answer else ANSWERS
        key = next((key for key in keys if isinstance(returned.get(key), str)), None)
        return {**returned, key: revised} if key else returned
    log.warning("a revision could not be put into a %s", type(returned).__name__)
    return returned
