"""The drafter with a model, which writes a cited answer from the evidence, with its reasoning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from masis.errors import BadReply
from masis.llm.roles.prompting import (
    Asker,
    RolePrompt,
    compose,
    load,
    question_and_evidence,
    without_fences,
)
from masis.llm.roles.replies import DraftReply
from masis.schema.audit import Draft, JudgedBy
from masis.schema.case import Evidence

PROMPT = "drafter"
MAX_TOKENS = 2_000


@dataclass(frozen=True)
class ModelDrafter:
    """Writes an answer from the evidence."""

    asker: Asker
    temperature: float = 0.3

    @property
    def judged_by(self) -> JudgedBy:
        """The model, and the version of the prompt."""
        return JudgedBy(model=self.asker.name, version=load(PROMPT).version)

    def draft(self, query: str, evidence: Sequence[Evidence]) -> Draft:
        """Return an answer that cites the evidence.

        Raises:
            ProviderFailed: The provider failed.
            BadReply: The reply has no answer (CRITIC-ERR-001).

        """
        role_prompt = prompt(query, evidence, self.asker.control.fence)
        reply = self.asker.ask(
            role_prompt, DraftReply, max_tokens=MAX_TOKENS, temperature=self.temperature
        )
        text = without_fences(reply.answer)
        if not text:
            raise BadReply("the drafter wrote no answer", kind="empty", raw=reply.model_dump_json())
        steps = (step.strip() for step in reply.reasoning_steps)
        return Draft(
            answer=text,
            reasoning_steps=tuple(step for step in steps if step),
            judged_by=self.judged_by,
        )


def prompt(query: str, evidence: Sequence[Evidence], mark: str) -> RolePrompt:
    """Return the drafter's prompt."""
    return compose(PROMPT, mark, question_and_evidence(query, evidence), ())
