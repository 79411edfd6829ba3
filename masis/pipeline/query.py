"""A question answered and checked in one call: retrieve, draft, critique
(DRAFT-CRITIQUE-PIPELINE).
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from masis.api.draft_critique import critique_draft, critique_draft_async
from masis.api.roles import build_roles, check_models
from masis.audit.control.concurrency import start_in_thread
from masis.audit.loop import Roles
from masis.errors import InputError, MasisError, RetrievalFailed, StepError
from masis.pipeline.documents import documents, evidence
from masis.schema.audit import Draft
from masis.schema.drafts import PipelineOptions, PipelineResult, options_of
from masis.settings import Settings

Retriever = Any
"""A function of the question, or an object with ``invoke`` or ``retrieve``, or their
async forms.
"""
DraftWriter = Callable[[str, str], Any]
"""Writes a draft from the question and the context: a text, or a message with one."""
Options = PipelineOptions | Mapping[str, Any] | None

NOTHING_FOUND = "Nothing was found that a draft could be written from."
SWITCHED_OFF = "Critique is switched off."


def query_with_critique(
    query: str,
    retriever: Retriever,
    options: Options = None,
    settings: Settings | None = None,
    roles: Roles | None = None,
    *,
    draft: DraftWriter | None = None,
) -> PipelineResult:
    """Search, draft an answer from what was found, and critique it (queryWithCritique).

    ``retriever`` is any function of the question, or a retriever of LangChain or LlamaIndex;
    ``draft`` writes the draft from question and context, our own drafter where it is None. A draft
    of fewer than ``draft_min_length`` characters is not critiqued, and nothing is drafted where
    nothing was found: ``not_critiqued`` says so. Raises InputError for a question or a retriever
    that is none, RetrievalFailed where the retriever fails, StepError where no draft could be
    written. For a retriever that is only async, the error names ``query_with_critique_async``.
    """
    try:
        # it waits for nothing
        _answer_query(query, retriever, options, settings, roles, draft, _Request.ask_now).send(
            None
        )
    except StopIteration as done:
        result: PipelineResult = done.value
        return result
    raise AssertionError


async def query_with_critique_async(
    query: str,
    retriever: Retriever,
    options: Options = None,
    settings: Settings | None = None,
    roles: Roles | None = None,
    *,
    draft: DraftWriter | None = None,
) -> PipelineResult:
    """``query_with_critique`` for code that is async; retriever and ``draft`` are awaited where
    they can be.

    What can't be runs on a thread of its own. Cancelling the task stops the critique.
    """
    return await _answer_query(
        query, retriever, options, settings, roles, draft, _Request.ask_later
    )


class _Request(NamedTuple):
    """What is asked next, and of whom: ``ask`` of who can only be waited for, ``ask_async`` of who
    can be awaited.

    ``field`` names the argument that brought them; ``failure`` makes the error of whatever they
    raise.
    """

    field: str
    ask: Callable[[], Any]
    ask_async: Callable[[], Any] | None
    failure: Callable[[str], MasisError] | None = None

    async def ask_now(self) -> Any:
        """Ask here, and return the answer. Raises InputError where it has to be awaited."""
        found = self._answer(self.ask)
        if inspect.isawaitable(found):
            if inspect.iscoroutine(found):
                found.close()
            hint = "Await query_with_critique_async, or give one that is not."
            raise InputError("is async", hint=hint, field=self.field)
        return found

    async def ask_later(self) -> Any:
        """Ask, beside the event loop where it can't be awaited, and return the answer."""
        if self.ask_async is not None:
            found = self._answer(self.ask_async)
        else:
            found = await asyncio.wrap_future(
                start_in_thread(lambda: self._answer(self.ask), "pipeline")
            )
        if inspect.isawaitable(found):
            with self._report_failure():
                found = await found
        return found

    def _answer(self, ask: Callable[[], Any]) -> Any:
        with self._report_failure():
            found = ask()
            # a generator may fail as well
            return list(found) if isinstance(found, Iterator) else found

    @contextmanager
    def _report_failure(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if self.failure is None or isinstance(error, MasisError):
                raise
            raise self.failure(f"{type(error).__name__}: {error}") from error


async def _answer_query(
    query: str,
    retriever: Retriever,
    options: Options,
    settings: Settings | None,
    roles: Roles | None,
    draft: DraftWriter | None,
    ask: Callable[[_Request], Coroutine[Any, Any, Any]],
) -> PipelineResult:
    """Return the result, letting ``ask`` ask for each part of it; all is checked before anything is
    asked.
    """
    if not isinstance(query, str) or not query.strip():
        raise InputError("is empty", hint="Ask something.", field="query")
    settings = settings or Settings()
    chosen = options_of(PipelineOptions, options or {})
    if roles is None:
        check_models(settings)
    found = documents(await ask(_search(retriever, query)))
    # assembleContext
    context = "\n\n---\n\n".join(f"[{each.path or each.id}]\n{each.content}" for each in found)
    result = PipelineResult(context=context, search_results=found)
    if not chosen.generate_answer:
        return result
    if not found:
        return result.model_copy(update={"not_critiqued": NOTHING_FOUND})

    def write() -> Any:
        if draft is not None:
            return draft(query, context)
        return (roles or build_roles(settings)).drafter.draft(query, evidence(found))

    awaited = write if inspect.iscoroutinefunction(draft) else None
    writing = _Request(
        "draft", write, awaited, lambda why: StepError(f"The draft could not be written: {why}")
    )
    text = _draft_text(await ask(writing))
    result = result.model_copy(update={"draft": text})
    enabled = settings.draft_critique if chosen.enable_critique is None else chosen.enable_critique
    if not enabled:
        return result.model_copy(update={"not_critiqued": SWITCHED_OFF})
    if len(text.strip()) < settings.draft_min_length:
        why = f"The draft is shorter than {settings.draft_min_length} characters."
        return result.model_copy(update={"not_critiqued": why})
    critiquing = _Request(
        "draft",
        lambda: critique_draft(query, text, found, chosen.critique_options, settings, roles),
        lambda: critique_draft_async(query, text, found, chosen.critique_options, settings, roles),
    )
    critique = await ask(critiquing)
    return result.model_copy(update={"critique": critique, "draft": critique.revised_draft or text})


def _search(retriever: Retriever, query: str) -> _Request:
    """Return how a retriever is asked: it is known by its methods. Raises InputError for what can't
    be asked.
    """

    def method(*names: str) -> Callable[[str], Any] | None:
        return next(
            (own for name in names if callable(own := getattr(retriever, name, None))), None
        )

    itself = retriever if callable(retriever) else None
    ask = method("invoke", "retrieve") or itself
    ask_async = method("ainvoke", "aretrieve") or (
        itself if inspect.iscoroutinefunction(retriever) else None
    )
    if ask is None and ask_async is None:
        raise InputError(
            f"{type(retriever).__name__} can't be asked",
            hint=(
                "Give a function of the question, or an object with 'invoke' (LangChain) or"
                " 'retrieve' (LlamaIndex)."
            ),
            field="retriever",
        )
    return _Request(
        "retriever",
        lambda: (ask or ask_async)(query),  # type: ignore[misc]
        (lambda: ask_async(query)) if ask_async is not None else None,
        lambda why: RetrievalFailed(f"The retriever failed: {why}"),
    )


def _draft_text(made: Any) -> str:
    """Return the text of a draft: itself, our own drafter's, or a message's (``content``, ``text``,
    ``response``).
    """
    if isinstance(made, str):
        return made
    if isinstance(made, Draft):
        return made.answer
    for name in ("content", "text", "response"):
        if isinstance(own := getattr(made, name, None), str):
            return own
    raise InputError(
        f"gave {type(made).__name__}, not a text", hint="Return the draft as a text.", field="draft"
    )
