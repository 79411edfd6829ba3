"""The critic with a model, whose single call gives the fields of both critic specs.

It sees the question, the evidence, the answer and the reasoning steps, but not the issues that code
found in citations and claims, so that it judges independently. Penalties are applied afterwards
(MASIS-CRITIC-P1, MASIS-CRITIC-P6).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from masis.audit.context import AuditContext
from masis.audit.critique import CritiqueJudgement, RawIssue
from masis.audit.text.quotes import locate_quote
from masis.errors import BadReply, CriticFailed, InvalidCritique, StepError
from masis.llm.roles.house import (
    house_sections,
    house_version,
    tells_critic,
    with_house_instructions,
)
from masis.llm.roles.prompting import (
    Asker,
    RolePrompt,
    answer,
    compose,
    load,
    question_and_evidence,
    rows,
)
from masis.llm.roles.replies import (
    CritiqueReply,
    HouseCritiqueReply,
    RaisedHouseIssue,
    RaisedIssue,
)
from masis.llm.roles.verdicts import Chunks
from masis.schema.audit import JudgedBy
from masis.schema.base import Unscored
from masis.schema.judge import JudgeBrief
from masis.schema.rules import IssueType

PROMPT = "critic"
MIN_TOKENS, MAX_TOKENS = 3_000, 8_000
UNSUPPORTED: frozenset[IssueType] = frozenset({"hallucination", "unsupported"})
GAPS: frozenset[IssueType] = frozenset({"logical", "incomplete_reasoning"})


@dataclass(frozen=True)
class ModelCritic:
    """Audits an answer strictly by the evidence, and by the house rules of a team if it has some.

    ``version`` is recorded; if it's empty, the prompt's version.
    """

    asker: Asker
    temperature: float = 0.0
    version: str = ""
    brief: JudgeBrief | None = None

    @property
    def judged_by(self) -> JudgedBy:
        """The model, and the versions of the prompt and of what the team adds to it."""
        version = self.version or load(PROMPT).version
        if self.brief is not None and tells_critic(self.brief):
            version = f"{version} {house_version()}"
        return JudgedBy(model=self.asker.name, version=version)

    def critique(self, context: AuditContext) -> CritiqueJudgement | Unscored:
        """Return the model's judgement.

        If there is none, ``Unscored`` has a code: CRITIC-ERR-003 if the provider failed, 001 if the
        model refused, 005 if its reply isn't a critique.
        """
        most = min(MAX_TOKENS, MIN_TOKENS + len(context.answer) // 2)
        briefed = self.brief is not None and tells_critic(self.brief)
        try:
            reply = self.asker.ask(
                prompt(context, self.asker.control.fence, self.brief),
                HouseCritiqueReply if briefed else CritiqueReply,
                max_tokens=most,
                temperature=self.temperature,
            )
        except BadReply as error:
            code = CriticFailed.code if error.kind == "refused" else InvalidCritique.code
            return Unscored(reason=str(error), code=code, raw=error.raw)
        except StepError as error:
            return Unscored.of(error)
        return judgement(reply, context)


def prompt(context: AuditContext, mark: str, brief: JudgeBrief | None = None) -> RolePrompt:
    """Return the critic's prompt, with the house rules and examples of a brief."""
    briefed = brief is not None and tells_critic(brief)
    house = house_sections(brief) if brief is not None and briefed else ()
    sections = [*house, answer(context.answer)]
    if context.reasoning_steps:
        steps = enumerate(context.reasoning_steps, 1)
        sections.append(
            rows("REASONING", ({"step": number, "text": text} for number, text in steps))
        )
    composed = compose(
        PROMPT, mark, question_and_evidence(context.query, context.evidence), sections
    )
    return with_house_instructions(composed) if briefed else composed


def judgement(reply: CritiqueReply, context: AuditContext) -> CritiqueJudgement:
    """Return the reply as a judgement, with unchanged numbers, quotes as in the answer, and chunks
    by their ids.
    """
    chunks = Chunks(context.evidence)
    markers = [
        (citation.marker_start, citation.marker_end)
        for citation in context.citation_audit.citations
    ]
    names = dict.fromkeys(name for raised in reply.issues for name in raised.evidence_ids)
    unknown = [name for name in names if chunks.id_of(name) is None]
    return CritiqueJudgement(
        confidence=reply.confidence,
        hallucination_detected=reply.hallucination_detected,
        needs_retry=reply.needs_retry,
        overall_quality_score=reply.overall_quality_score,
        critique_confidence=reply.critique_confidence,
        critique_reasoning=reply.critique_reasoning,
        raw_issues=tuple(
            dict.fromkeys(
                _objection(raised, context.answer, markers, chunks) for raised in reply.issues
            )
        ),
        unsupported_claims=_issues_of_types(
            reply, UNSUPPORTED, lambda issue: issue.location or issue.description
        ),
        logical_gaps=_issues_of_types(reply, GAPS, lambda issue: issue.description),
        conflicting_evidence=tuple(reply.conflicting_evidence),
        notes=(
            (f"The critic names evidence that this case does not have: {', '.join(unknown)}",)
            if unknown
            else ()
        ),
    )


def _issues_of_types(
    reply: CritiqueReply, types: frozenset[IssueType], words: Callable[[RaisedIssue], str]
) -> tuple[str, ...]:
    """Return texts of the issues of these types, for fields of MASIS-CRITIC-P2 that the model isn't
    asked for again.
    """
    return tuple(dict.fromkeys(words(issue) for issue in reply.issues if issue.type in types))


def _objection(
    raised: RaisedIssue, text: str, markers: list[tuple[int, int]], chunks: Chunks
) -> RawIssue:
    quote = raised.location or None
    if quote and (position := locate_quote(quote, text, markers)):
        quote = text[position.start : position.end]
    return RawIssue(
        type=raised.type,
        rule=f"critic_{raised.type}",
        severity=raised.severity,
        description=raised.description,
        reason=raised.reasoning,
        suggestion=raised.suggestion,
        quote=quote,
        evidence_ids=chunks.ids_of(raised.evidence_ids),
        house_rule=raised.house_rule if isinstance(raised, RaisedHouseIssue) else "",
    )
