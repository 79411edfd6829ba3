"""A schema that all calls of a run share, so that providers can cache long evidence.

OpenAI and Anthropic cache a prompt by its beginning, and put the schema before the messages. Calls
with different schemas therefore share nothing: the evaluator's call can't use the evidence that the
critic's call put into the cache. Above ``SHARED_FROM`` characters, all calls of a run use one
schema with a field for each kind of reply, of which one is filled. It has about 1,100 tokens more
than a separate schema, which pays off from about 5,500 tokens of evidence if cached tokens cost
half. Other servers keep the schema out of their caches (``Provider.schema_in_cache``), so it would
only cost there.

In the other reply formats the schema follows the messages or isn't sent, so prefixes are shared
anyway.
"""

from __future__ import annotations

import contextlib
from functools import cache
from typing import TypeVar, get_args

from pydantic import BaseModel, create_model

from masis.llm.client.reply_parsing import ParsedReply, UnreadableReply, parse
from masis.llm.roles.prompting import RolePrompt
from masis.llm.roles.replies import (
    CheckedClaimsReply,
    CompletenessReply,
    CritiqueReply,
    EvaluationReply,
    RevisionReply,
    RoleReply,
    VerdictsReply,
)

R = TypeVar("R", bound=BaseModel)

SHARED_FROM = 32_000
"""The shared schema is used from this many characters of question and evidence (8,000 tokens)."""


class CommonReply(RoleReply):
    """A reply to one of the prompts that share question and evidence; all other fields are null."""

    claims: CheckedClaimsReply | None
    claims_verify: VerdictsReply | None
    completeness: CompletenessReply | None
    critic: CritiqueReply | None
    evaluator: EvaluationReply | None
    reviser: RevisionReply | None


_FIELD: dict[type[BaseModel], str] = {
    get_args(field.annotation)[0]: name for name, field in CommonReply.model_fields.items()
}


def should_share(prompt: RolePrompt, shape: type[BaseModel]) -> bool:
    """Return whether the shared schema pays off for this prompt."""
    return shape in _FIELD and len(prompt.shared) >= SHARED_FROM


def for_shared_schema(prompt: RolePrompt, shape: type[BaseModel]) -> RolePrompt:
    """Return the prompt for the shared schema, which names the field to fill.

    Its instructions follow the question and the evidence, so that calls share their beginning.
    """
    field = _FIELD[shape]
    form = f"The form has a field for each kind of task. Fill {field!r}; all others are null."
    return prompt._replace(
        instructions="", task="\n\n".join(filter(None, (prompt.instructions, prompt.task, form)))
    )


def parse_shared(text: str, shape: type[R]) -> ParsedReply[R]:
    """Return the record in the requested field and the repairs; other fields are ignored.

    A server that accepts a schema without enforcing it may send the record alone; it's read too.

    Raises:
        UnreadableReply: The reply has neither.

    """
    try:
        form = parse(text, with_only_field_of(shape))
        return ParsedReply(record_in_shared(form.record, shape), form.repairs)
    except UnreadableReply:
        with contextlib.suppress(UnreadableReply):
            return parse(text, shape)
        raise


def record_in_shared(form: BaseModel, shape: type[R]) -> R:
    """Return the record in the requested field."""
    record: R = getattr(form, _FIELD[shape])
    return record


@cache
def with_only_field_of(shape: type[BaseModel]) -> type[BaseModel]:
    """Return a model of the shared schema with only the field of this record."""
    fields = {_FIELD[shape]: (shape, ...)}
    filled: type[BaseModel] = create_model(  # type: ignore[call-overload]
        "Filled", __base__=RoleReply, **fields
    )
    return filled
