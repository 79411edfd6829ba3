"""One form for all replies of a run, where question and evidence are so long that the provider's
cache must serve them.

OpenAI and Anthropic put a schema before the messages, so that calls with different schemas share no
prefix: the judge's call could not be served what the critic's had put into the cache. Above
``COMMON_FROM`` characters the calls of a run to them therefore ask for the same form, with a field
for each kind of reply of which one is filled. It is some 1,100 tokens longer than a form of one's
own, which pays from about 5,500 tokens of evidence where cached tokens cost half. Other servers
keep the schema out of their caches (``Provider.schema_in_cache``): there it would only cost.

In the other modes the schema stands behind the messages, or nowhere, and prefixes are shared as
they are.
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

COMMON_FROM = 32_000
"""Characters of question and evidence from which the common form is asked for: some
8,000 tokens.
"""


class CommonReply(RoleReply):
    """A reply to one of the prompts that share question and evidence; the fields of the others are
    null.
    """

    claims: CheckedClaimsReply | None
    claims_verify: VerdictsReply | None
    completeness: CompletenessReply | None
    critic: CritiqueReply | None
    evaluator: EvaluationReply | None
    reviser: RevisionReply | None


_FIELD: dict[type[BaseModel], str] = {
    get_args(field.annotation)[0]: name for name, field in CommonReply.model_fields.items()
}


def worthwhile(prompt: RolePrompt, shape: type[BaseModel]) -> bool:
    """Whether a reply of this shape is better asked for in the common form."""
    return shape in _FIELD and len(prompt.shared) >= COMMON_FROM


def asked_in(prompt: RolePrompt, shape: type[BaseModel]) -> RolePrompt:
    """The prompt, saying which field to fill; its instructions stand behind question and evidence,
    which are shared.
    """
    field = _FIELD[shape]
    form = f"The form has a field for each kind of task. Fill {field!r}; all others are null."
    return prompt._replace(
        instructions="", task="\n\n".join(filter(None, (prompt.instructions, prompt.task, form)))
    )


def read_from(text: str, shape: type[R]) -> R:
    """The record in the field that was to be filled. Raises ``Unreadable`` as
    ``parse_from`` does.
    """
    return parse_from(text, shape).record


def parse_from(text: str, shape: type[R]) -> ParsedReply[R]:
    """The record in the field that was to be filled; what stands in the others is not looked at.

    A server that takes a schema and does not enforce it may send the record without the form around
    it: read all the same. Raises ``Unreadable`` where there is neither.
    """
    try:
        form = parse(text, holding(shape))
        return ParsedReply(record_in_shared(form.record, shape), form.repairs)
    except UnreadableReply:
        with contextlib.suppress(UnreadableReply):
            return parse(text, shape)
        raise


def record_in_shared(form: BaseModel, shape: type[R]) -> R:
    """The record in the field that was to be filled."""
    return getattr(form, _FIELD[shape])  # type: ignore[no-any-return]


@cache
def holding(shape: type[BaseModel]) -> type[BaseModel]:
    """The form of which one field counts."""
    fields = {_FIELD[shape]: (shape, ...)}
    return create_model("Filled", __base__=RoleReply, **fields)  # type: ignore[call-overload, no-any-return]
