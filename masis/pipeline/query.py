"""A question answered and checked in one call: retrieve, draft, critique (DRAFT-CRITIQUE-PIPELINE)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from masis.api.draft_critique import critique_draft, critique_draft_async
from masis.api.roles import build_roles, check_models
from masis.audit.concurrency import start_in_thread
from masis.audit.loop import Roles
from masis.errors import InputError, MasisError, StepError
from masis.pipeline.documents import Retriever, evidence, search, search_async
from masis.schema.audit import Draft
from masis.schema.drafts import CritiqueResult, PipelineOptions, PipelineResult, SourceDocument, options_of
from masis.settings import Settings

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

    ``retriever`` is any function of the question, or a retriever of LangChain or LlamaIndex; ``draft`` writes the draft
    from question and context, our own drafter where it is None. A draft of fewer than ``draft_min_length`` characters
    is not critiqued, and nothing is drafted where nothing was found: ``not_critiqued`` says so. Raises InputError for
    a question or a retriever that is none, RetrievalFailed where the retriever fails, StepError where no draft could be
    written.
    """
    request = _Request(query, options, settings, roles)
    found = search(retriever, query)
    result = request.found(found)
    if not request.drafts(found):
        return result
    result = request.drafted(result, request.draft(found) if draft is None else _written(draft, query, result.context))
    if result.not_critiqued is not None:
        return result
    return request.critiqued(
        result,
        critique_draft(query, result.draft or "", found, request.options.critique_options, request.settings, roles),
    )


async def query_with_critique_async(
    query: str,
    retriever: Retriever,
    options: Options = None,
    settings: Settings | None = None,
    roles: Roles | None = None,
    *,
    draft: DraftWriter | None = None,
) -> PipelineResult:
    """``query_with_critique`` for code that is async; retriever and ``draft`` are awaited where they can be.

    What can't be runs on a thread of its own. Cancelling the task stops the critique.
    """
    request = _Request(query, options, settings, roles)
    found = await search_async(retriever, query, _in_thread)
    result = request.found(found)
    if not request.drafts(found):
        return result
    if draft is None:
        text = await _in_thread(lambda: request.draft(found))
    elif inspect.iscoroutinefunction(draft):
        text = _text(await _awaited(draft(query, result.context)))
    else:
        text = await _in_thread(lambda: _written(draft, query, result.context))
    result = request.drafted(result, text)
    if result.not_critiqued is not None:
        return result
    critique = await critique_draft_async(
        query, result.draft or "", found, request.options.critique_options, request.settings, roles
    )
    return request.critiqued(result, critique)


class _Request:
    """One question with its options; both are checked before anything is searched."""

    def __init__(self, query: str, options: Options, settings: Settings | None, roles: Roles | None) -> None:
        if not isinstance(query, str) or not query.strip():
            raise InputError("is empty", cure="Ask something.", field="query")
        self.query, self.roles = query, roles
        self.settings = settings or Settings()
        self.options = options_of(PipelineOptions, options or {})
        if roles is None:
            check_models(self.settings)

    def found(self, documents: Sequence[SourceDocument]) -> PipelineResult:
        """Return the result after the search."""
        result = PipelineResult(context=context_of(documents), search_results=tuple(documents))
        if self.options.generate_answer and not documents:
            return result.model_copy(update={"not_critiqued": NOTHING_FOUND})
        return result

    def drafts(self, documents: Sequence[SourceDocument]) -> bool:
        """Return whether a draft is to be written."""
        return bool(self.options.generate_answer and documents)

    def draft(self, documents: Sequence[SourceDocument]) -> str:
        """Return our own drafter's answer."""
        drafter = (self.roles or build_roles(self.settings)).drafter
        return drafter.draft(self.query, evidence(documents)).answer

    def drafted(self, result: PipelineResult, draft: str) -> PipelineResult:
        """Return the result with the draft; ``not_critiqued`` says why it will not be critiqued."""
        enabled = self.options.enable_critique
        why = None
        if not (self.settings.draft_critique if enabled is None else enabled):
            why = SWITCHED_OFF
        elif len(draft.strip()) < self.settings.draft_min_length:
            why = f"The draft is shorter than {self.settings.draft_min_length} characters."
        return result.model_copy(update={"draft": draft, "not_critiqued": why})

    def critiqued(self, result: PipelineResult, critique: CritiqueResult) -> PipelineResult:
        """Return the result with the critique, and its revision in place of the draft where there is one."""
        return result.model_copy(update={"critique": critique, "draft": critique.revised_draft or result.draft})


def context_of(documents: Sequence[SourceDocument]) -> str:
    """Return the documents as one text, each under its path or id (assembleContext)."""
    return "\n\n---\n\n".join(f"[{each.path or each.id}]\n{each.content}" for each in documents)


def _written(draft: DraftWriter, query: str, context: str) -> str:
    try:
        made = draft(query, context)
    except MasisError:
        raise
    except Exception as error:
        raise StepError(f"The draft could not be written: {type(error).__name__}: {error}") from error
    if inspect.isawaitable(made):
        if inspect.iscoroutine(made):
            made.close()
        raise InputError("is async", cure="Await query_with_critique_async, or give one that is not.", field="draft")
    return _text(made)


async def _awaited(made: Any) -> Any:
    try:
        return await made
    except MasisError:
        raise
    except Exception as error:
        raise StepError(f"The draft could not be written: {type(error).__name__}: {error}") from error


def _text(made: Any) -> str:
    """Return the text of a draft: itself, our own drafter's, or a message's (``content``, ``text``, ``response``)."""
    if isinstance(made, str):
        return made
    if isinstance(made, Draft):
        return made.answer
    for name in ("content", "text", "response"):
        if isinstance(own := getattr(made, name, None), str):
            return own
    raise InputError(f"gave {type(made).__name__}, not a text", cure="Return the draft as a text.", field="draft")


async def _in_thread(work: Callable[[], Any]) -> Any:
    return await asyncio.wrap_future(start_in_thread(work, "pipeline"))
