"""``CriticAgent`` and ``RevisionAgent`` (REQ-CRITIC-001 and -008) as modules that DSPy can optimise.

A model judges or writes; what it hands in goes through the rules in code that every audit's goes through: numbers
clamped, what is none left unscored, confidence lowered by the citations, ``has_major_issues`` read from the issues,
nothing recorded of a revision that its texts don't confirm.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import dspy

from masis.api import audits
from masis.audit import issues
from masis.audit.context import AuditContext
from masis.audit.critique import CritiqueJudgement, ruled
from masis.audit.run_control import RunBudget, RunControl
from masis.errors import BadReply, CriticFailed, InvalidCritique, InvalidRevision, ReviserFailed, StepError
from masis.integrations.dspy.asking import asked, language_model, name_of
from masis.integrations.dspy.contracts import CriticAgentOutput, RevisionAgentOutput, critique_of, evidence_of
from masis.integrations.dspy.demonstrations import SHAPES, Role
from masis.llm import registry
from masis.llm.roles.critic import judgement
from masis.llm.roles.prompting import load
from masis.llm.roles.reviser import briefing, revision
from masis.schema.audit import Critique, Issue, JudgedBy, Revision
from masis.schema.base import Unscored
from masis.schema.case import Evidence
from masis.settings import Settings

__all__ = ["CONTEXT", "Chunks", "CriticAgent", "RevisionAgent"]

Chunks = Iterable[Any]
CONTEXT = "context"
"""In place of a model: whatever ``dspy.context`` or ``dspy.configure`` names when the agent is asked."""


_INPUTS: dict[Role, dict[str, Any]] = {
    "critic": {
        "original_query": str,
        "evidence_chunks": list[Evidence],
        "answer": str,
        "reasoning_steps": list[str],
    },
    "reviser": {
        "original_query": str,
        "evidence_chunks": list[Evidence],
        "original_answer": str,
        "issues": list[dict[str, Any]],
        "critique": dict[str, Any],
    },
}


def signature_of(role: Role) -> Any:
    """Return the task of a role as a typed signature, with the instructions of its prompt file."""
    fields = {name: (kind, dspy.InputField()) for name, kind in _INPUTS[role].items()}
    fields |= {name: (field.annotation, dspy.OutputField()) for name, field in SHAPES[role].model_fields.items()}
    return dspy.Signature(fields, load(role).before, signature_name=role.title())


class Agent(dspy.Module):
    """An agent and its model.

    The model is ``llm_provider:model_name``, with the address and the key that settings and environment have for it, or
    ``lm``: any ``dspy.LM``. ``lm=CONTEXT`` leaves it to ``dspy.context``.
    """

    role: Role
    temperature = 0.0

    def __init__(
        self,
        llm_provider: str = "openai",
        model_name: str = "gpt-4",
        *,
        lm: Any = None,
        settings: Settings | None = None,
    ) -> None:
        super().__init__()
        self.model_string = f"{llm_provider}:{model_name}"
        self.settings = settings or Settings()
        self.llm = lm
        self.version = f"{load(self.role).version} by DSPy"

    async def aforward(self, *arguments: Any, **named: Any) -> Any:
        """``forward`` on a thread of its own, awaited."""
        return await asyncio.to_thread(self.forward, *arguments, **named)

    @property
    def judged_by(self) -> JudgedBy:
        """Model and version, for the record."""
        lm = self._own_lm()
        lm = dspy.settings.lm if lm == CONTEXT else lm
        return JudgedBy(model=name_of(lm) if lm is not None else self.model_string, version=self.version)

    def for_run(self, control: RunControl) -> Any:
        """Return the model for one run: the agent's own, else ``llm_provider:model_name``, reached as settings say.

        Raises SettingsError for one that can't be asked.
        """
        if (lm := self._own_lm()) is not None:
            return None if lm == CONTEXT else lm
        model = registry.asker(self.model_string, self.role, control, self.settings)
        return language_model(model, self.version, temperature=self.temperature)

    def ask(self, inputs: dict[str, Any], control: RunControl | None, lm: Any) -> Any:
        """Return the reply as a record, asked within a run or alone. Raises ProviderFailed and BadReply."""
        control = control or RunControl(RunBudget(call_s=self.settings.call_deadline_s))
        (predictor,) = self.predictors()
        found = asked(predictor, inputs, lm or self.for_run(control), control, self.settings, self.role)
        shape = SHAPES[self.role]
        return shape.model_construct(**{name: getattr(found, name) for name in shape.model_fields})

    def _own_lm(self) -> Any:
        return next((each.lm for each in self.predictors() if each.lm is not None), self.llm)

    def _cited(self, answer: str, query: str, chunks: Chunks, number: int, steps: Iterable[str] | None) -> AuditContext:
        """Return what an agent sees, with the citations audited by code."""
        evidence = evidence_of(chunks)
        cited = audits.audit_citations(answer, evidence, self.settings)
        found = issues.merged(cited, (), (), self.settings, answer=answer, evidence=evidence)
        return AuditContext(query, answer, evidence, cited, (), (), found, number, tuple(steps or ()))


class CriticAgent(Agent):
    """Analyses an answer by its evidence (REQ-CRITIC-001)."""

    role: Role = "critic"

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.critic = dspy.Predict(signature_of(self.role))

    def forward(
        self,
        answer: str,
        original_query: str,
        evidence_chunks: Chunks,
        reasoning_steps: Iterable[str] | None = None,
        iteration_number: int = 1,
    ) -> Any:
        """Return a critique: the fields of ``CriticAgentOutput``, and ``objections``, what the critic itself raised.

        Where no critique could be had, scores are None and ``unscored`` says why; nothing is raised for it.
        """
        context = self._cited(answer, original_query, evidence_chunks, iteration_number, reasoning_steps)
        judged = self.judge(context)
        own = issues.RaisedIssues((), ())
        if isinstance(judged, CritiqueJudgement):
            own = issues.raised(judged.objections, context.answer, context.issues)
        found = (*context.issues, *own.issues)
        verdict = ruled(judged, context.citation_audit, found, self.judged_by, own.notes)
        output = critique_of(verdict, found)
        fields = {name: getattr(output, name) for name in CriticAgentOutput.model_fields}
        return dspy.Prediction(**fields, objections=own.issues, found=found, verdict=verdict)

    def judge(
        self, context: AuditContext, control: RunControl | None = None, lm: Any = None
    ) -> CritiqueJudgement | Unscored:
        """Return the model's judgement, as any critic of an audit does; a failure is a value."""
        inputs = {
            "original_query": context.query,
            "evidence_chunks": list(context.evidence),
            "answer": context.answer,
            "reasoning_steps": list(context.reasoning_steps),
        }
        try:
            return judgement(self.ask(inputs, control, lm), context)
        except BadReply as error:
            code = CriticFailed.code if error.kind == "refused" else InvalidCritique.code
            return Unscored(reason=str(error), code=code, raw=error.raw)
        except StepError as error:
            return Unscored(reason=str(error), code=error.code, raw=error.raw)


class RevisionAgent(Agent):
    """Improves an answer on the issues found (REQ-CRITIC-008)."""

    role: Role = "reviser"
    temperature = 0.3

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.revision = dspy.Predict(signature_of(self.role))

    def forward(
        self,
        original_answer: str,
        critique: Any,
        original_query: str,
        evidence_chunks: Chunks,
        iteration_number: int = 1,
    ) -> Any:
        """Return a revision: the fields of ``RevisionAgentOutput``. ``critique`` is what a ``CriticAgent`` gave.

        Raises ReviserFailed, InvalidRevision or ProviderFailed where none could be had.
        """
        context = self._cited(original_answer, original_query, evidence_chunks, iteration_number, None)

        def of_critique(name: str) -> Any:
            return critique.get(name) if isinstance(critique, Mapping) else getattr(critique, name, None)

        if (verdict := of_critique("verdict")) is not None:
            made = self.revise(context, verdict, of_critique("found") or ())
        else:
            raised = [
                each if isinstance(each, Mapping) else each.model_dump(mode="json")
                for each in of_critique("issues") or ()
            ]
            named = [(str(each.get("id", f"i{number}")), each) for number, each in enumerate(raised, 1)]
            rows = [{"ids": [name], **{key: each[key] for key in each if key != "id"}} for name, each in named]
            view = {"reasoning": of_critique("critique_reasoning") or ""}
            made = self._revised(context, rows, view, tuple(_named(name) for name, _ in named), None, None)
        output = RevisionAgentOutput.model_validate(made, from_attributes=True)
        return dspy.Prediction(**{name: getattr(output, name) for name in type(output).model_fields}, revision=made)

    def revise(
        self,
        context: AuditContext,
        critique: Critique,
        found: Iterable[Issue],
        control: RunControl | None = None,
        lm: Any = None,
    ) -> Revision:
        """Return a revision, as any reviser of an audit does. Raises as ``forward`` does."""
        found = tuple(found)
        return self._revised(context, *briefing(context, critique, found), found, control, lm)

    def _revised(
        self,
        context: AuditContext,
        rows: list[dict[str, Any]],
        view: dict[str, Any],
        found: tuple[Issue, ...],
        control: RunControl | None,
        lm: Any,
    ) -> Revision:
        inputs = {
            "original_query": context.query,
            "evidence_chunks": list(context.evidence),
            "original_answer": context.answer,
            "issues": rows,
            "critique": view,
        }
        try:
            return revision(self.ask(inputs, control, lm), context, found, self.judged_by)
        except BadReply as error:
            failure = ReviserFailed if error.kind == "refused" else InvalidRevision
            raise failure(str(error), raw=error.raw) from error


def _named(name: str) -> Issue:
    """Return an issue with its id alone: enough to check which ids a reviser may name."""
    return Issue(
        id=name,
        key=name,
        source="critic",
        type="factual",
        rule="given",
        severity="medium",
        description="",
        reason="",
        suggestion="",
    )
