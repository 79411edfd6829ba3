"""Answers a question and checks the answer in one call: retrieve, draft, critique
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
"""A function of the question, or an object with ``invoke`` or ``retrieve`` or their async forms."""
DraftWriter = Callable[[str, str], Any]
"""Writes a draft from question and context: a text, or a message with one."""
Options = PipelineOptions | Mapping[str, Any] | None

NO_DOCUMENTS = "Nothing was found to write a draft from."
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
    """Search, draft an answer from the documents found, and critique it (queryWithCritique).

    A draft of fewer than ``draft_min_length`` characters is not critiqued, and nothing is drafted
    if nothing was found. ``not_critiqued`` says so.

    Args:
        query: The question.
        retriever: A function of the question, or a retriever of LangChain or LlamaIndex.
        options: The options of the pipeline.
        settings: The settings of the audit.
        roles: The implementation of each role. Built from the settings if None.
        draft: Writes the draft from question and context. Our own drafter if None.

    Raises:
        InputError: The question is empty, or the retriever can't be called or is only async; the
            error then names ``query_with_critique_async``.
        RetrievalFailed: The retriever failed.
        StepError: No draft could be written.

    """
    try:
        # ask_now never suspends, so the first send runs the coroutine to its end.
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
    """Answer a question in async code, like ``query_with_critique``. Retriever and ``draft`` are
    awaited if possible.

    Functions that aren't async run on a thread. Cancelling the task stops the critique.
    """
    return await _answer_query(
        query, retriever, options, settings, roles, draft, _Request.ask_later
    )


class _Request(NamedTuple):
    """The next request of the pipeline, with a blocking and an async way to make it.

    Attributes:
        field: The argument that the request comes from.
        ask: Makes the request and blocks.
        ask_async: Makes the request and returns an awaitable. None if that isn't possible.
        failure: Makes the error for anything they raise.

    """

    field: str
    ask: Callable[[], Any]
    ask_async: Callable[[], Any] | None
    failure: Callable[[str], MasisError] | None = None

    async def ask_now(self) -> Any:
        """Make the request here and return the result.

        Raises:
            InputError: The result would have to be awaited.

        """
        result = self._answer(self.ask)
        if inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                # Otherwise Python warns that the coroutine was never awaited.
                result.close()
            hint = "Await query_with_critique_async, or give one that is not."
            raise InputError("is async", hint=hint, field=self.field)
        return result

    async def ask_later(self) -> Any:
        """Make the request and return the result, on a thread if it can't be awaited."""
        if self.ask_async is not None:
            result = self._answer(self.ask_async)
        else:
            result = await asyncio.wrap_future(
                start_in_thread(lambda: self._answer(self.ask), "pipeline")
            )
        if inspect.isawaitable(result):
            with self._report_failure():
                result = await result
        return result

    def _answer(self, ask: Callable[[], Any]) -> Any:
        with self._report_failure():
            result = ask()
            # A generator runs, and may fail, only when it is read.
            return list(result) if isinstance(result, Iterator) else result

    @contextmanager
    def _report_failure(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if self.failure is None or isinstance(error, MasisError):
                raise
            # Retrievers are other people's code and raise anything, often with an empty message.
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
    """Return the result, making each request with ``ask``; all arguments are checked first."""
    if not isinstance(query, str) or not query.strip():
        raise InputError("is empty", hint="Give a question.", field="query")
    settings = settings or Settings()
    chosen = options_of(PipelineOptions, options or {})
    if roles is None:
        check_models(settings)
    sources = documents(await ask(_search(retriever, query)))
    # assembleContext in the spec.
    context = "\n\n---\n\n".join(
        f"[{source.path or source.id}]\n{source.content}" for source in sources
    )
    result = PipelineResult(context=context, search_results=sources)
    if not chosen.generate_answer:
        return result
    if not sources:
        return result.model_copy(update={"not_critiqued": NO_DOCUMENTS})

    def write() -> Any:
        if draft is not None:
            return draft(query, context)
        return (roles or build_roles(settings)).drafter.draft(query, evidence(sources))

    write_async = write if inspect.iscoroutinefunction(draft) else None
    draft_request = _Request(
        "draft",
        write,
        write_async,
        lambda reason: StepError(f"The draft could not be written: {reason}"),
    )
    text = _draft_text(await ask(draft_request))
    result = result.model_copy(update={"draft": text})
    is_enabled = (
        settings.draft_critique if chosen.enable_critique is None else chosen.enable_critique
    )
    if not is_enabled:
        return result.model_copy(update={"not_critiqued": SWITCHED_OFF})
    if len(text.strip()) < settings.draft_min_length:
        reason = f"The draft is shorter than {settings.draft_min_length} characters."
        return result.model_copy(update={"not_critiqued": reason})
    critique_request = _Request(
        "draft",
        lambda: critique_draft(query, text, sources, chosen.critique_options, settings, roles),
        lambda: critique_draft_async(
            query, text, sources, chosen.critique_options, settings, roles
        ),
    )
    critique = await ask(critique_request)
    return result.model_copy(update={"critique": critique, "draft": critique.revised_draft or text})


def _search(retriever: Retriever, query: str) -> _Request:
    """Return the request for a retriever, which is recognised by its methods.

    Raises:
        InputError: It can't be called.

    """

    def method(*names: str) -> Callable[[str], Any] | None:
        return next(
            (
                method_found
                for name in names
                if callable(method_found := getattr(retriever, name, None))
            ),
            None,
        )

    as_function = retriever if callable(retriever) else None
    ask = method("invoke", "retrieve") or as_function
    ask_async = method("ainvoke", "aretrieve") or (
        as_function if inspect.iscoroutinefunction(retriever) else None
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
        lambda message: RetrievalFailed(f"The retriever failed: {message}"),
    )


def _draft_text(draft: Any) -> str:
    """Return the text of a draft: itself, our own drafter's, or a message's (``content``, ``text``,
    ``response``).
    """
    if isinstance(draft, str):
        return draft
    if isinstance(draft, Draft):
        return draft.answer
    for name in ("content", "text", "response"):
        if isinstance(text := getattr(draft, name, None), str):
            return text
    raise InputError(
        f"gave {type(draft).__name__}, not a text",
        hint="Return the draft as a text.",
        field="draft",
    )
