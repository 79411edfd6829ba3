"""Critic, reviser and their loop as modules that DSPy can optimise (REQ-CRITIC-001, -008, -015 to
-029).

An agent is the ordinary critic or reviser, whose model is asked through a ``dspy.Predict``: so what
the model hands in goes through the rules that every audit's goes through (numbers clamped, what is
none left unscored, confidence lowered by the citations, nothing recorded of a revision that its
texts don't confirm), and optimisers can learn from the calls.

DSPy's own adapters set off fields by headings that a hostile text may hold as well, so the prompt,
the fences and the reading of replies are those of ``masis/llm``. A model is asked as every role
asks it: addresses, keys, retries, deadlines and the record of each call are
``masis.llm.client.model``'s. Any other ``dspy.LM`` is a provider like others.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, get_args

import dspy
from dspy import lm15
from pydantic import BaseModel, ValidationError

from masis.api import audits
from masis.api.roles import build_roles, calls_at_once
from masis.audit import issues, loop
from masis.audit.context import AuditContext
from masis.audit.control.concurrency import cancellable, start_in_thread
from masis.audit.control.run_control import RunBudget, RunControl
from masis.audit.critique import CritiqueJudgement, apply_critique_rules
from masis.errors import ProviderFailed, SettingsError, StepError
from masis.integrations.dspy.contracts import CriticLoopOutput, RevisionAgentOutput, critique_of
from masis.integrations.dspy.plugin import SHAPES, examples_of, with_program
from masis.integrations.dspy.programs import Role
from masis.llm import registry
from masis.llm.client.limits import Limiter
from masis.llm.client.model import Model
from masis.llm.client.retry import RetryPolicy
from masis.llm.client.server_capabilities import ServerCapabilities
from masis.llm.providers.base import Call, FailureKind, ModelReply, TokenUsage, TryFailed
from masis.llm.roles.critic import ModelCritic
from masis.llm.roles.prompting import RolePrompt, load
from masis.llm.roles.reviser import ModelReviser, briefing
from masis.observers.observation import run_to_completion
from masis.schema.audit import Critique, Issue, JudgedBy, Revision
from masis.schema.base import Unscored
from masis.schema.calls import ReplyMode
from masis.schema.case import Case, Evidence, evidence_of
from masis.schema.rules import IssueType
from masis.settings import OFFLINE, Settings

R = TypeVar("R", bound=BaseModel)
Chunks = Iterable[Any]
CONTEXT = "context"
"""Pass this instead of a model to use the one of ``dspy.context`` or ``dspy.configure`` at call
time.
"""

TOKENS_MOST = 8_000


class OptimizationStopped(BaseException):
    """Stops an optimization. It isn't an ``Exception``, because optimizers catch those and continue
    with the next case.
    """


@dataclass(frozen=True)
class OurEngine:
    """A model of ours behind a ``dspy.LM``; each call is made within ``turn``, which may raise
    Stopped.
    """

    model: Model
    version: str
    turn: Callable[[], AbstractContextManager[None]] = nullcontext

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Return words, for an optimiser that has instructions written. Raises ProviderError for
        our StepError.
        """
        system = (
            request.system
            if isinstance(request.system, str)
            else _joined_parts(request.system or ())
        )
        text = "\n\n".join(_joined_parts(message.parts) for message in request.messages)
        prompt = RolePrompt(
            system or "You are a careful assistant.", "Your task:", text, self.version
        )
        most = request.config.max_tokens or TOKENS_MOST
        with self.turn():
            try:
                words = self.model.say(
                    prompt, max_tokens=most, temperature=request.config.temperature
                )
            except StepError as error:
                raise lm15.ProviderError(str(error)) from error
        return lm15.Response(
            id=None,
            model=self.model.name,
            message=lm15.Message.assistant(words),
            finish_reason="stop",
            usage=lm15.Usage(),
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> OurEngine:
        return self  # connections and limits are shared by all copies of a program


def language_model(
    model: Model,
    version: str,
    *,
    temperature: float = 0.0,
    turn: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Any:
    """Return a model of ours as a ``dspy.LM``; ``version`` is recorded with each call."""
    return dspy.LM(
        # the library takes what follows the last slash for a family of models
        f"masis/{model.name.replace('/', ' ')}",
        engine=OurEngine(model, version, turn),
        cache=False,
        num_retries=0,
        temperature=temperature,
        max_tokens=TOKENS_MOST,
    )


def name_of(lm: Any) -> str:
    """Return the name of a model, as records have it."""
    engine = getattr(lm, "engine", None)
    return (
        engine.model.name
        if isinstance(engine, OurEngine)
        else str(getattr(lm, "model", None) or type(lm).__name__)
    )


def ours(lm: Any, control: RunControl, settings: Settings, role: Role) -> Any:
    """Return a ``dspy.LM`` of ours, around any other one. Raises ProviderFailed where there is
    none.
    """
    if lm is None:
        raise ProviderFailed(
            "no model is named: give the agent an lm, or set one with dspy.context(lm=...)"
        )
    if isinstance(getattr(lm, "engine", None), OurEngine):
        return lm
    lent = LentModel(lm)
    model = Model(
        name=name_of(lm),
        model=name_of(lm),
        role=role,
        control=control,
        provider=lent,
        limiter=Limiter(calls_at_once(settings)),
        capabilities=ServerCapabilities(lent.modes),
        retry=RetryPolicy(settings.max_retries, settings.retry_base_s, settings.retry_cap_s),
    )
    return language_model(
        model, f"{load(role).version} by DSPy", temperature=lm.kwargs.get("temperature") or 0.0
    )


class FencedPrompt(dspy.Adapter):
    """Puts one prompt of ours to a model of ours, with the instructions and demonstrations of the
    program.
    """

    def __init__(
        self, role: Role, prompt: RolePrompt, shape: type[BaseModel], max_tokens: int
    ) -> None:
        super().__init__()
        self._role, self._prompt, self._shape, self._most = role, prompt, shape, max_tokens

    def __call__(
        self,
        lm: Any,
        lm_kwargs: dict[str, Any],
        signature: Any,
        demos: list[Any],
        inputs: dict[str, Any],
    ) -> list[dict[str, Any]]:
        """Ask, and return the fields of the reply, scores unchanged. Raises ProviderFailed and
        BadReply.
        """
        engine = lm.engine
        examples = examples_of(self._role, [dict(each.items()) for each in demos])
        prompt = with_program(self._prompt, self._role, signature.instructions, examples)
        temperature = lm_kwargs.get("temperature", lm.kwargs.get("temperature"))
        with engine.turn():
            prompt = prompt._replace(version=engine.version)
            record = engine.model.ask(
                prompt, self._shape, max_tokens=self._most, temperature=temperature
            )
        return [dict(record)]


class LentModel:
    """Adapts any other ``dspy.LM`` as a provider that tries once, without DSPy's own retries and
    cache.
    """

    schema_in_cache = False

    def __init__(self, lm: Any) -> None:
        self._lm, self._timed = lm, isinstance(getattr(lm, "engine", None), str)
        if self._timed:
            self._lm = lm.copy(num_retries=0, cache=False)
            self._lm.history = lm.history
        self.modes: tuple[ReplyMode, ...] = ("prompt",)
        # a model unknown to the library's tables is asked in the prompt
        with contextlib.suppress(Exception):
            if lm.supports_response_schema and "response_format" in lm.supported_params:
                self.modes = ("json_schema", "prompt")

    def answer(self, call: Call) -> ModelReply:
        """Make one try. Raises TryFailed."""
        arguments: dict[str, Any] = {"timeout": call.timeout_s} if self._timed else {}
        text = call.task_with_schema() if call.mode == "prompt" else call.task()
        if call.mode == "json_schema":
            form = {"name": call.schema.name, "strict": True, "schema": call.schema.schema}
            arguments["response_format"] = {"type": "json_schema", "json_schema": form}
        messages = [
            {"role": "system", "content": call.prompt.system},
            {"role": "user", "content": f"{call.prompt.shared}\n\n{text}"},
        ]
        with dspy.track_usage() as tracker:
            try:
                found = _Plain(messages)(
                    self._lm, arguments, dspy.Signature("asked -> text"), [], {"asked": ""}
                )
            except dspy.LMError as error:
                trouble: FailureKind = "server" if dspy.is_retryable_lm_error(error) else "request"
                why = " ".join((error.message or str(error)).split())[:300]
                raise TryFailed(
                    trouble, why, retry_after_s=getattr(error, "retry_after", None)
                ) from error
            except dspy.AdapterParseError as error:
                raise TryFailed("empty", "the reply is empty") from error
        used = tracker.get_total_tokens().values()
        counts = [
            sum(int(each.get(f"{kind}_tokens") or 0) for each in used)
            for kind in ("prompt", "completion")
        ]
        return ModelReply(
            found[0]["text"], None, TokenUsage(prompt=counts[0], completion=counts[1])
        )


class _Plain(dspy.Adapter):
    """Sends messages as they are and returns the text: the library takes messages from adapters
    alone.
    """

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        super().__init__()
        self._messages = messages

    def format(
        self, signature: Any, demos: list[Any], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        return self._messages

    def parse(self, signature: Any, completion: str) -> dict[str, Any]:
        return {"text": completion}


def _joined_parts(parts: Any) -> str:
    return "\n\n".join(part.text for part in parts if getattr(part, "text", None))


_SHARED: dict[str, Any] = {"original_query": str, "evidence_chunks": list[Evidence]}
_INPUTS: dict[Role, dict[str, Any]] = {
    "critic": {**_SHARED, "answer": str, "reasoning_steps": list[str]},
    "reviser": {
        **_SHARED,
        "original_answer": str,
        "issues": list[dict[str, Any]],
        "critique": dict[str, Any],
    },
}


def signature_of(role: Role) -> Any:
    """Return the task of a role as a typed signature, with the instructions of its prompt file."""
    fields = {name: (kind, dspy.InputField()) for name, kind in _INPUTS[role].items()}
    fields |= {
        name: (field.annotation, dspy.OutputField())
        for name, field in SHAPES[role].model_fields.items()
    }
    return dspy.Signature(fields, load(role).before, signature_name=role.title())


class Agent(dspy.Module):
    """An agent and its model.

    The model is ``llm_provider:model_name``, with the address and the key that settings and
    environment have for it, or ``lm``: any ``dspy.LM``. ``lm=CONTEXT`` leaves it to
    ``dspy.context``.
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
        return JudgedBy(
            model=name_of(lm) if lm is not None else self.model_string, version=self.version
        )

    def for_run(self, control: RunControl) -> Any:
        """Return the model for one run: the agent's own, else ``llm_provider:model_name``, reached
        as settings say.

        Raises SettingsError for one that can't be asked.
        """
        if (lm := self._own_lm()) is not None:
            return None if lm == CONTEXT else lm
        model = registry.asker(self.model_string, self.role, control, self.settings)
        return language_model(model, self.version, temperature=self.temperature)

    def in_run(self, control: RunControl | None = None) -> InRun:
        """Return the agent as the critic or reviser of one run.

        Without a control it has one of its own, and a model that can't be asked is a failure like
        others, of the call.
        """
        if control is not None:
            return InRun(self, control, self.for_run(control))
        return InRun(self, RunControl(RunBudget(call_s=self.settings.call_deadline_s)))

    def _own_lm(self) -> Any:
        return next((each.lm for each in self.predictors() if each.lm is not None), self.llm)

    def _audit_context(
        self, answer: str, query: str, chunks: Chunks, number: int, steps: Iterable[str] | None
    ) -> AuditContext:
        """Return what an agent sees, with the citations audited by code."""
        evidence = evidence_of(chunks, "evidence_chunks")
        cited = audits.audit_citations(answer, evidence, self.settings)
        found = issues.merge_issues(cited, (), (), self.settings, answer=answer, evidence=evidence)
        return AuditContext(
            query, answer, evidence, cited, (), (), found, number, tuple(steps or ())
        )


@dataclass(frozen=True)
class InRun:
    """An agent in its role within one run, whose model is asked through its predictor.

    ``lm`` is the model of the run; without one the agent's own is asked, or the one of the context.
    ``inputs`` are what the predictor is called with: the answer at hand.
    """

    agent: Agent
    control: RunControl
    lm: Any = None
    inputs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def judged_by(self) -> JudgedBy:
        """The agent's model and version."""
        return self.agent.judged_by

    @property
    def name(self) -> str:
        """The agent's model."""
        return self.judged_by.model

    def critique(self, context: AuditContext) -> CritiqueJudgement | Unscored:
        """Return the model's judgement, as any critic of an audit does; a failure is a value."""
        asker = self._asker(
            context, answer=context.answer, reasoning_steps=list(context.reasoning_steps)
        )
        return ModelCritic(asker, version=self.agent.version).critique(context)

    def revise(
        self, context: AuditContext, critique: Critique, issues: Sequence[Issue]
    ) -> Revision:
        """Return a revision, as any reviser of an audit does. Raises ReviserFailed and its like."""
        rows, view = briefing(context, critique, issues)
        asker = self._asker(context, original_answer=context.answer, issues=rows, critique=view)
        return ModelReviser(asker, version=self.agent.version).revise(context, critique, issues)

    def _asker(self, context: AuditContext, **inputs: Any) -> InRun:
        shared = {"original_query": context.query, "evidence_chunks": list(context.evidence)}
        return dataclasses.replace(self, inputs={**shared, **inputs})

    def ask(
        self,
        prompt: RolePrompt,
        shape: type[R],
        *,
        max_tokens: int,
        temperature: float | None = None,
    ) -> R:
        """Return the reply as a record. The temperature is the language model's, which optimisers
        set.

        Raises ProviderFailed and BadReply.
        """
        agent = self.agent
        (predictor,) = agent.predictors()
        lm = predictor.lm or self.lm or agent.for_run(self.control) or dspy.settings.lm
        with dspy.context(adapter=FencedPrompt(agent.role, prompt, shape, max_tokens)):
            found = predictor(**self.inputs, lm=ours(lm, self.control, agent.settings, agent.role))
        return shape.model_construct(**{name: getattr(found, name) for name in shape.model_fields})


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
        """Return a critique: the fields of ``CriticAgentOutput``, and ``objections``, what the
        critic itself raised.

        Where no critique could be had, scores are None and ``unscored`` says why; nothing is raised
        for it.
        """
        context = self._audit_context(
            answer, original_query, evidence_chunks, iteration_number, reasoning_steps
        )
        judged = self.in_run().critique(context)
        own = issues.RaisedIssues((), ())
        if isinstance(judged, CritiqueJudgement):
            own = issues.raise_critic_issues(judged.objections, context.answer, context.issues)
        found = (*context.issues, *own.issues)
        verdict = apply_critique_rules(
            judged, context.citation_audit, found, self.judged_by, own.notes
        )
        output = critique_of(verdict, found)
        return dspy.Prediction(**dict(output), objections=own.issues, found=found, verdict=verdict)


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
        """Return a revision: the fields of ``RevisionAgentOutput``.

        ``critique`` is what a ``CriticAgent`` gave, or has ``issues`` and ``critique_reasoning`` as
        the spec writes them. Raises ReviserFailed, InvalidRevision or ProviderFailed where none
        could be had.
        """
        context = self._audit_context(
            original_answer, original_query, evidence_chunks, iteration_number, None
        )
        given = dict(critique)
        verdict, found = given.get("verdict"), tuple(given.get("found") or ())
        if verdict is None:
            found = tuple(
                _issue_from_dict(each, number)
                for number, each in enumerate(given.get("issues") or (), 1)
            )
            verdict = apply_critique_rules(
                Unscored(reason="given"), context.citation_audit, found, self.judged_by
            )
            verdict = verdict.model_copy(
                update={"critique_reasoning": given.get("critique_reasoning") or ""}
            )
        made = self.in_run().revise(context, verdict, found)
        output = RevisionAgentOutput.model_validate(made, from_attributes=True)
        return dspy.Prediction(**dict(output), revision=made)


def _issue_from_dict(given: Any, number: int) -> Issue:
    """Return an issue that somebody else found, under the names of the spec or ours."""
    each: Mapping[str, Any] = given if isinstance(given, Mapping) else given.model_dump(mode="json")
    name, kind = str(each.get("id", f"i{number}")), each.get("issue_type", each.get("type"))
    return Issue(
        id=name,
        key=name,
        source="critic",
        type=kind if kind in get_args(IssueType) else "factual",
        rule="given",
        severity=each.get("severity", "medium"),
        description=each.get("description", ""),
        reason=each.get("reasoning", each.get("reason", "")),
        suggestion=each.get("suggestion", ""),
        quote=each.get("location", each.get("quote")),
    )


class MultiAgentCriticLoop(dspy.Module):
    """Improves an answer until it converges; the best one counts.

    ``settings`` rules the rest: who verifies claims (offline by default), the penalties, the
    deadlines. Raises SettingsError for ``max_iterations`` outside 1 to 5.
    """

    def __init__(
        self,
        critic_agent: CriticAgent,
        revision_agent: RevisionAgent,
        max_iterations: int = 3,
        improvement_threshold: float = 0.05,
        *,
        settings: Settings | None = None,
    ) -> None:
        super().__init__()
        self.critic_agent, self.revision_agent = critic_agent, revision_agent
        self.max_iterations, self.improvement_threshold = max_iterations, improvement_threshold
        self.settings = (settings or Settings(evaluate="never")).model_copy(
            update={"critic": OFFLINE, "reviser": OFFLINE}
        )
        self._settings(max_iterations, improvement_threshold)

    def forward(
        self,
        initial_answer: str,
        original_query: str,
        evidence_chunks: Chunks,
        reasoning_steps: Iterable[str] | None = None,
        max_iterations: int | None = None,
        improvement_threshold: float | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Any:
        """The fields of ``CriticLoopOutput``, and ``run``, the whole audit behind them.

        A failure of an agent ends the loop with the best answer so far and ``termination_reason``
        "error", never with an exception (REQ-CRITIC-030, 031). Raises InputError for evidence that
        is none.
        """
        settings = self._settings(max_iterations, improvement_threshold)
        case = Case(
            id="dspy",
            query=original_query,
            answer=initial_answer,
            evidence=evidence_of(evidence_chunks, "evidence_chunks"),
            reasoning_steps=tuple(reasoning_steps or ()),
        )
        roles, name, digest = self._roles(settings), loop.new_run_id(), case.digest()
        work = loop.audit(
            case, roles, settings, run_id=name, case_digest=digest, cancelled=cancelled
        )
        run = run_to_completion(work)
        return dspy.Prediction(
            **dict(CriticLoopOutput.model_validate(run, from_attributes=True)), run=run
        )

    async def aforward(self, *arguments: Any, **named: Any) -> Any:
        """``forward``, awaited: the loop runs on a thread of its own, and stops where the task is
        cancelled.
        """

        def run(cancelled: Callable[[], bool]) -> Any:
            return self.forward(*arguments, **(named | {"cancelled": cancelled}))

        return await cancellable(run, partial(start_in_thread, name="critic loop"))

    def _settings(
        self, max_iterations: int | None, improvement_threshold: float | None
    ) -> Settings:
        most = self.max_iterations if max_iterations is None else max_iterations
        least = (
            self.improvement_threshold if improvement_threshold is None else improvement_threshold
        )
        limits = {"max_iterations": most, "improvement_threshold": least}
        try:
            return Settings.model_validate(self.settings.model_dump() | limits)
        except ValidationError as error:
            first = error.errors()[0]
            raise SettingsError(
                f"{first['loc'][0]}: {first['msg']} (got {first['input']!r})"
            ) from None

    def _roles(self, settings: Settings) -> loop.Roles:
        roles = build_roles(settings)
        control, critic, reviser = roles.control, self.critic_agent, self.revision_agent
        return dataclasses.replace(
            roles,
            critic=critic.in_run(control),
            reviser=reviser.in_run(control),
            models=roles.models
            | {
                "critic": critic.judged_by.model,
                "reviser": reviser.judged_by.model,
            },
            prompts=roles.prompts | {"critic": critic.version, "reviser": reviser.version},
            calls_models=True,
        )
