"""``CriticAgent`` and ``RevisionAgent`` (REQ-CRITIC-001 and -008) as modules that DSPy can optimise.

A model judges or writes; what it hands in goes through the rules in code that every audit's goes through: numbers
clamped, what is none left unscored, confidence lowered by the citations, ``has_major_issues`` read from the issues,
nothing recorded of a revision that its texts don't confirm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import dspy

from masis.api import audits
from masis.audit import issues
from masis.audit.context import AuditContext
from masis.audit.critique import CritiqueJudgement, ruled
from masis.audit.run_control import RunBudget, RunControl
from masis.errors import BadReply, CriticFailed, InvalidCritique, InvalidRevision, ReviserFailed, StepError
from masis.integrations.dspy.asking import asked, asked_async
from masis.integrations.dspy.contracts import CriticAgentOutput, critique_of, evidence_of, revision_of
from masis.integrations.dspy.engine import language_model
from masis.integrations.dspy.signatures import CRITIC_PROMPT, REVISER_PROMPT, critique_task, revision_task
from masis.llm import registry
from masis.llm.client.retry import RetryPolicy
from masis.llm.roles.critic import judgement
from masis.llm.roles.prompting import load
from masis.llm.roles.replies import CritiqueReply, RevisionReply
from masis.llm.roles.reviser import briefing, revision
from masis.schema.audit import Critique, Issue, JudgedBy, Revision
from masis.schema.base import Unscored
from masis.settings import Settings

# What critic and reviser share as DSPy modules: a model, how it is asked, who the record says it was.

Chunks = Iterable[Any]
CONTEXT = "context"
"""In place of a model: whatever ``dspy.context`` or ``dspy.configure`` names when the agent is asked."""


class Agent(dspy.Module):
    """An agent and its model."""

    role = ""
    prompt = ""
    temperature = 0.0

    def __init__(self, llm_provider: str, model_name: str, lm: Any, settings: Settings | None) -> None:
        super().__init__()
        self.model_string = f"{llm_provider}:{model_name}"
        self.settings = settings or Settings()
        self.llm = lm
        self.version = f"{load(self.prompt).version} by DSPy"

    @property
    def model(self) -> str:
        """Return the name of the model, as records have it."""
        lm = self._own_lm()
        if lm == CONTEXT:
            lm = dspy.settings.lm
        return str(getattr(lm, "model", None) or self.model_string)

    def for_run(self, control: RunControl) -> Any:
        """Return the model for one run: the agent's own, else ``llm_provider:model_name``, reached as settings say.

        Raises SettingsError for one that can't be asked.
        """
        if (lm := self._own_lm()) is not None:
            return None if lm == CONTEXT else lm
        model = registry.asker(self.model_string, self.role, control, self.settings)
        return language_model(model, self.version, temperature=self.temperature)

    def _own_lm(self) -> Any:
        return next((each.lm for each in self.predictors() if each.lm is not None), self.llm)

    def _about(self) -> str:
        return f"{self.role} {self.version}"

    def _control(self) -> RunControl:
        return RunControl(RunBudget(call_s=self.settings.call_deadline_s))

    def _retry(self) -> RetryPolicy:
        return RetryPolicy(self.settings.max_retries, self.settings.retry_base_s, self.settings.retry_cap_s)

    @property
    def judged_by(self) -> JudgedBy:
        """Model and version, for the record."""
        return JudgedBy(model=self.model, version=self.version)


def read_of(found: Any, shape: Any) -> Any:
    """Return the prediction as the record it was read from: validated when it was parsed."""
    return shape.model_construct(**{name: getattr(found, name) for name in shape.model_fields})


__all__ = ["CONTEXT", "Chunks", "CriticAgent", "RevisionAgent"]


class CriticAgent(Agent):
    """Analyses an answer by its evidence (REQ-CRITIC-001).

    The model is ``llm_provider:model_name``, with the address and the key that settings and environment have for it, or
    ``lm``: any ``dspy.LM``. ``lm=CONTEXT`` leaves it to ``dspy.context``.
    """

    role, prompt = "critic", CRITIC_PROMPT

    def __init__(
        self,
        llm_provider: str = "openai",
        model_name: str = "gpt-4",
        *,
        lm: Any = None,
        settings: Settings | None = None,
    ) -> None:
        super().__init__(llm_provider, model_name, lm, settings)
        self.critic = dspy.Predict(critique_task())

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
        context = self.context(answer, original_query, evidence_chunks, reasoning_steps, iteration_number)
        return self._prediction(context, self.judge(context))

    async def aforward(
        self,
        answer: str,
        original_query: str,
        evidence_chunks: Chunks,
        reasoning_steps: Iterable[str] | None = None,
        iteration_number: int = 1,
    ) -> Any:
        """``forward``, awaited."""
        context, control = (
            self.context(answer, original_query, evidence_chunks, reasoning_steps, iteration_number),
            self._control(),
        )
        try:
            lm = self.for_run(control)
            found = await asked_async(self.critic, _of_critic(context), lm, control, self._retry(), self._about())
            return self._prediction(context, judgement(read_of(found, CritiqueReply), context))
        except StepError as error:
            return self._prediction(context, _unscored(error))

    def judge(
        self, context: AuditContext, control: RunControl | None = None, lm: Any = None
    ) -> CritiqueJudgement | Unscored:
        """Return the model's judgement, as any critic of an audit does; a failure is a value."""
        control = control or self._control()
        try:
            lm = lm or self.for_run(control)
            found = asked(self.critic, _of_critic(context), lm, control, self._retry(), self._about())
        except StepError as error:
            return _unscored(error)
        return judgement(read_of(found, CritiqueReply), context)

    def context(
        self,
        answer: str,
        original_query: str,
        evidence_chunks: Chunks,
        reasoning_steps: Iterable[str] | None = None,
        iteration_number: int = 1,
    ) -> AuditContext:
        """Return what a critic sees, with the citations audited by code."""
        evidence = evidence_of(evidence_chunks)
        cited = audits.audit_citations(answer, evidence, self.settings)
        found = issues.merged(cited, (), (), self.settings, answer=answer, evidence=evidence)
        steps = tuple(reasoning_steps or ())
        return AuditContext(original_query, answer, evidence, cited, (), (), found, iteration_number, steps)

    def _prediction(self, context: AuditContext, given: CritiqueJudgement | Unscored) -> Any:
        own = issues.RaisedIssues((), ())
        if isinstance(given, CritiqueJudgement):
            own = issues.raised(given.objections, context.answer, context.issues)
        found = (*context.issues, *own.issues)
        verdict = ruled(given, context.citation_audit, found, self.judged_by, own.notes)
        output = critique_of(verdict, found)
        return dspy.Prediction(
            **{name: getattr(output, name) for name in CriticAgentOutput.model_fields},
            objections=own.issues,
            found=found,
            verdict=verdict,
        )


class RevisionAgent(Agent):
    """Improves an answer on the issues found (REQ-CRITIC-008). Its model is named as ``CriticAgent``'s."""

    role, prompt, temperature = "reviser", REVISER_PROMPT, 0.3

    def __init__(
        self,
        llm_provider: str = "openai",
        model_name: str = "gpt-4",
        *,
        lm: Any = None,
        settings: Settings | None = None,
    ) -> None:
        super().__init__(llm_provider, model_name, lm, settings)
        self.revision = dspy.Predict(revision_task())

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
        context, found, inputs = self._inputs_of(
            original_answer, critique, original_query, evidence_chunks, iteration_number
        )
        return self._prediction(self._revised(context, found, inputs, self._control(), None))

    async def aforward(
        self,
        original_answer: str,
        critique: Any,
        original_query: str,
        evidence_chunks: Chunks,
        iteration_number: int = 1,
    ) -> Any:
        """``forward``, awaited."""
        context, found, inputs = self._inputs_of(
            original_answer, critique, original_query, evidence_chunks, iteration_number
        )
        control = self._control()
        try:
            lm = self.for_run(control)
            given = await asked_async(self.revision, inputs, lm, control, self._retry(), self._about())
        except BadReply as error:
            raise _as_reviser(error) from error
        return self._prediction(revision(read_of(given, RevisionReply), context, found, self.judged_by))

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
        rows, view = briefing(context, critique, found)
        inputs = _of_reviser(context, rows, view)
        return self._revised(context, found, inputs, control or self._control(), lm)

    def _revised(
        self, context: AuditContext, found: tuple[Issue, ...], inputs: dict[str, Any], control: RunControl, lm: Any
    ) -> Revision:
        try:
            lm = lm or self.for_run(control)
            given = asked(self.revision, inputs, lm, control, self._retry(), self._about())
        except BadReply as error:
            raise _as_reviser(error) from error
        return revision(read_of(given, RevisionReply), context, found, self.judged_by)

    def _inputs_of(
        self, answer: str, critique: Any, query: str, chunks: Chunks, number: int
    ) -> tuple[AuditContext, tuple[Issue, ...], dict[str, Any]]:
        evidence = evidence_of(chunks)
        cited = audits.audit_citations(answer, evidence, self.settings)
        context = AuditContext(query, answer, evidence, cited, (), (), (), number)
        if (verdict := _given(critique, "verdict")) is not None:
            found = tuple(_given(critique, "found") or ())
            return context, found, _of_reviser(context, *briefing(context, verdict, found))
        raised = [_as_mapping(each) for each in _given(critique, "issues") or ()]
        rows = [{"ids": [str(each.pop("id", f"i{number}"))], **each} for number, each in enumerate(raised, 1)]
        view = {"reasoning": _given(critique, "critique_reasoning") or ""}
        return context, tuple(_named(row["ids"][0]) for row in rows), _of_reviser(context, rows, view)

    def _prediction(self, made: Revision) -> Any:
        output = revision_of(made)
        return dspy.Prediction(**{name: getattr(output, name) for name in type(output).model_fields}, revision=made)


def _of_critic(context: AuditContext) -> dict[str, Any]:
    return {
        "original_query": context.query,
        "evidence_chunks": list(context.evidence),
        "answer": context.answer,
        "reasoning_steps": list(context.reasoning_steps),
    }


def _of_reviser(context: AuditContext, rows: list[dict[str, Any]], view: dict[str, Any]) -> dict[str, Any]:
    return {
        "original_query": context.query,
        "evidence_chunks": list(context.evidence),
        "original_answer": context.answer,
        "issues": rows,
        "critique": view,
    }


def _unscored(error: StepError) -> Unscored:
    if isinstance(error, BadReply):
        code = CriticFailed.code if error.kind == "refused" else InvalidCritique.code
        return Unscored(reason=str(error), code=code, raw=error.raw)
    return Unscored(reason=str(error), code=error.code, raw=error.raw)


def _as_reviser(error: BadReply) -> StepError:
    failure = ReviserFailed if error.kind == "refused" else InvalidRevision
    return failure(str(error), raw=error.raw)


def _given(critique: Any, name: str) -> Any:
    return critique.get(name) if isinstance(critique, Mapping) else getattr(critique, name, None)


def _as_mapping(issue: Any) -> dict[str, Any]:
    return dict(issue) if isinstance(issue, Mapping) else dict(issue.model_dump(mode="json"))


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
