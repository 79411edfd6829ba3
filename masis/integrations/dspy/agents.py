"""The critic, the reviser and their loop as modules that DSPy can optimize (REQ-CRITIC-001, -008,
-015 to -029).

An agent is the ordinary critic or reviser that calls its model through a ``dspy.Predict``, so that
optimizers can learn from the calls. Replies pass through the rules of every audit: numbers are
clamped, invalid ones are unscored, the citations lower the confidence, and a revision's record only
contains changes that its texts confirm.

DSPy's own adapters separate fields by headings, which a hostile text could contain too. So prompts,
fences and the parsing of replies are from ``masis/llm``, and ``masis.llm.client.model`` handles
addresses, keys, retries, deadlines and the record of each call. Any other ``dspy.LM`` is wrapped as
a provider.
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
from masis.integrations.dspy.plugin import SHAPES, apply_program, examples_of
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

MAX_TOKENS = 8_000


class OptimizationStopped(BaseException):
    """Stops an optimization. It isn't an ``Exception``, because optimizers catch those and continue
    with the next case.
    """


@dataclass(frozen=True)
class OurEngine:
    """The engine of a ``dspy.LM`` that calls one of our models.

    Each call is made within ``turn``, which may raise OptimizationStopped.
    """

    model: Model
    version: str
    turn: Callable[[], AbstractContextManager[None]] = nullcontext

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Return free text, for an optimizer that asks for instructions.

        Raises ProviderError for our StepError.
        """
        system = (
            request.system if isinstance(request.system, str) else _join_parts(request.system or ())
        )
        text = "\n\n".join(_join_parts(message.parts) for message in request.messages)
        prompt = RolePrompt(
            system or "You are a careful assistant.", "Your task:", text, self.version
        )
        config = request.config
        with self.turn():
            try:
                reply = self.model.say(
                    prompt,
                    max_tokens=config.max_tokens or MAX_TOKENS,
                    temperature=config.temperature,
                )
            except StepError as error:
                raise lm15.ProviderError(str(error)) from error
        return lm15.Response(
            id=None,
            model=self.model.name,
            message=lm15.Message.assistant(reply),
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
    """Wrap one of our models as a ``dspy.LM``. ``version`` is recorded with each call."""
    return dspy.LM(
        # DSPy reads the part after the last slash as the model family, so no slash may remain.
        f"masis/{model.name.replace('/', ' ')}",
        engine=OurEngine(model, version, turn),
        cache=False,
        num_retries=0,
        temperature=temperature,
        max_tokens=MAX_TOKENS,
    )


def lm_name(lm: Any) -> str:
    """Return a model's name as it's recorded."""
    engine = getattr(lm, "engine", None)
    return (
        engine.model.name
        if isinstance(engine, OurEngine)
        else str(getattr(lm, "model", None) or type(lm).__name__)
    )


def wrap_lm(lm: Any, control: RunControl, settings: Settings, role: Role) -> Any:
    """Return a ``dspy.LM`` with our engine, which wraps any other one.

    Raises ProviderFailed if ``lm`` is None.
    """
    if lm is None:
        raise ProviderFailed(
            "no model is named. Give the agent an lm, or set one with dspy.context(lm=...)"
        )
    if isinstance(getattr(lm, "engine", None), OurEngine):
        return lm
    provider = DspyProvider(lm)
    model = Model(
        name=lm_name(lm),
        model=lm_name(lm),
        role=role,
        control=control,
        provider=provider,
        limiter=Limiter(calls_at_once(settings)),
        capabilities=ServerCapabilities(provider.modes),
        retry=RetryPolicy(settings.max_retries, settings.retry_base_s, settings.retry_cap_s),
    )
    return language_model(
        model, f"{load(role).version} by DSPy", temperature=lm.kwargs.get("temperature") or 0.0
    )


class FencedPrompt(dspy.Adapter):
    """Sends one of our prompts to one of our models, with a program's instructions and
    demonstrations.
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
        """Call the model and return the fields of its reply, with unchanged scores.

        Raises ProviderFailed and BadReply.
        """
        engine = lm.engine
        examples = examples_of(self._role, [dict(demo.items()) for demo in demos])
        prompt = apply_program(self._prompt, self._role, signature.instructions, examples)
        temperature = lm_kwargs.get("temperature", lm.kwargs.get("temperature"))
        with engine.turn():
            prompt = prompt._replace(version=engine.version)
            record = engine.model.ask(
                prompt, self._shape, max_tokens=self._most, temperature=temperature
            )
        return [dict(record)]


class DspyProvider:
    """Adapts any other ``dspy.LM`` as a provider that tries once, without DSPy's own retries and
    cache.
    """

    schema_in_cache = False

    def __init__(self, lm: Any) -> None:
        # A named engine is one of DSPy's own clients, which accept these options and a timeout.
        self._lm, self._is_client = lm, isinstance(getattr(lm, "engine", None), str)
        if self._is_client:
            self._lm = lm.copy(num_retries=0, cache=False)
            # copy() starts a new history, and users look for the calls in that of their own object.
            self._lm.history = lm.history
        self.modes: tuple[ReplyMode, ...] = ("prompt",)
        # If DSPy's tables don't list the model, the schema is part of the prompt.
        with contextlib.suppress(Exception):
            if lm.supports_response_schema and "response_format" in lm.supported_params:
                self.modes = ("json_schema", "prompt")

    def answer(self, call: Call) -> ModelReply:
        """Make one try. Raises TryFailed."""
        arguments: dict[str, Any] = {"timeout": call.timeout_s} if self._is_client else {}
        text = call.task_with_schema() if call.mode == "prompt" else call.task()
        if call.mode == "json_schema":
            form = {"name": call.schema.name, "strict": True, "schema": call.schema.schema}
            arguments["response_format"] = {"type": "json_schema", "json_schema": form}
        messages = [
            {"role": "system", "content": call.prompt.system},
            {"role": "user", "content": f"{call.prompt.shared}\n\n{text}"},
        ]
        # The only way to get the usage: an adapter returns the fields of the reply and nothing
        # else.
        with dspy.track_usage() as tracker:
            try:
                (fields,) = _VerbatimAdapter(messages)(
                    self._lm, arguments, dspy.Signature("asked -> text"), [], {"asked": ""}
                )
            except dspy.LMError as error:
                kind: FailureKind = "server" if dspy.is_retryable_lm_error(error) else "request"
                message = " ".join((error.message or str(error)).split())[:300]
                raise TryFailed(
                    kind, message, retry_after_s=getattr(error, "retry_after", None)
                ) from error
            except dspy.AdapterParseError as error:
                raise TryFailed("empty", "the reply is empty") from error
        prompt, completion = (
            sum(int(usage.get(name) or 0) for usage in tracker.get_total_tokens().values())
            for name in ("prompt_tokens", "completion_tokens")
        )
        return ModelReply(fields["text"], None, TokenUsage(prompt=prompt, completion=completion))


class _VerbatimAdapter(dspy.Adapter):
    """Sends messages unchanged and returns the text. DSPy only accepts messages from adapters."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        super().__init__()
        self._messages = messages

    def format(
        self, signature: Any, demos: list[Any], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        return self._messages

    def parse(self, signature: Any, completion: str) -> dict[str, Any]:
        return {"text": completion}


def _join_parts(parts: Any) -> str:
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
    """Return a role's task as a typed signature, with the instructions of its prompt file."""
    fields = {name: (kind, dspy.InputField()) for name, kind in _INPUTS[role].items()}
    fields |= {
        name: (field.annotation, dspy.OutputField())
        for name, field in SHAPES[role].model_fields.items()
    }
    return dspy.Signature(fields, load(role).before, signature_name=role.title())


class Agent(dspy.Module):
    """An agent and its model.

    The model is ``lm`` (any ``dspy.LM``) or else ``llm_provider:model_name``, with the address and
    the key from settings and environment. With ``lm=CONTEXT``, it's the model of ``dspy.context``.
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

    async def aforward(self, *arguments: Any, **keywords: Any) -> Any:
        """Run ``forward`` on a thread of its own."""
        return await asyncio.to_thread(self.forward, *arguments, **keywords)

    @property
    def judged_by(self) -> JudgedBy:
        """The model and version to record."""
        lm = self._own_lm()
        lm = dspy.settings.lm if lm == CONTEXT else lm
        return JudgedBy(
            model=lm_name(lm) if lm is not None else self.model_string, version=self.version
        )

    def for_run(self, control: RunControl) -> Any:
        """Return the model for one run: the agent's own, or else ``llm_provider:model_name``.

        Returns None for ``CONTEXT``. Raises SettingsError if the model can't be called.
        """
        if (lm := self._own_lm()) is not None:
            return None if lm == CONTEXT else lm
        model = registry.model_in_role(self.model_string, self.role, control, self.settings)
        return language_model(model, self.version, temperature=self.temperature)

    def in_run(self, control: RunControl | None = None) -> InRun:
        """Return the agent as the critic or reviser of one run.

        Without ``control``, the run has one of its own, and a model that can't be called fails at
        the call instead of here.
        """
        if control is not None:
            return InRun(self, control, self.for_run(control))
        return InRun(self, RunControl(RunBudget(call_s=self.settings.call_deadline_s)))

    def _own_lm(self) -> Any:
        return next((part.lm for part in self.predictors() if part.lm is not None), self.llm)

    def _audit_context(
        self, answer: str, query: str, chunks: Chunks, number: int, steps: Iterable[str] | None
    ) -> AuditContext:
        """Build the agent's input and audit the citations by code."""
        evidence = evidence_of(chunks, "evidence_chunks")
        cited = audits.audit_citations(answer, evidence, self.settings)
        merged = issues.merge_issues(cited, (), (), self.settings, answer=answer, evidence=evidence)
        return AuditContext(
            query, answer, evidence, cited, (), (), merged, number, tuple(steps or ())
        )


@dataclass(frozen=True)
class InRun:
    """An agent in its role within one run, which calls its model through its predictor.

    ``lm`` is the run's model. If it's None, the agent's own is called, or the one of the context.
    ``inputs`` are the predictor's arguments.
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
        """Return the model's judgement, or Unscored if there is none."""
        asker = self._asker(
            context, answer=context.answer, reasoning_steps=list(context.reasoning_steps)
        )
        return ModelCritic(asker, version=self.agent.version).critique(context)

    def revise(
        self, context: AuditContext, critique: Critique, issues: Sequence[Issue]
    ) -> Revision:
        """Return a revision. Raises ReviserFailed, InvalidRevision or ProviderFailed."""
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
        """Return the reply as a record, without validating it again.

        ``temperature`` is ignored in favor of the language model's, which optimizers set. Raises
        ProviderFailed and BadReply.
        """
        agent = self.agent
        (predictor,) = agent.predictors()
        lm = predictor.lm or self.lm or agent.for_run(self.control) or dspy.settings.lm
        with dspy.context(adapter=FencedPrompt(agent.role, prompt, shape, max_tokens)):
            wrapped = wrap_lm(lm, self.control, agent.settings, agent.role)
            reply = predictor(**self.inputs, lm=wrapped)
        return shape.model_construct(**{name: getattr(reply, name) for name in shape.model_fields})


class CriticAgent(Agent):
    """Critiques an answer against its evidence (REQ-CRITIC-001)."""

    role: Role = "critic"

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.critic = dspy.Predict(signature_of(self.role))

    def forward(
        self,
        answer: str,
        original_query: str,
        evidence_chunks: Chunks,
        reasoning_steps: Iterable[str] | None = None,
        iteration_number: int = 1,
    ) -> Any:
        """Return a critique with the fields of ``CriticAgentOutput``.

        ``critic_issues`` are the issues that the critic itself raised, without those of the
        citation audit.
        If there is no critique, scores are None and ``unscored`` says why. That isn't an exception.
        """
        context = self._audit_context(
            answer, original_query, evidence_chunks, iteration_number, reasoning_steps
        )
        judged = self.in_run().critique(context)
        raised = issues.RaisedIssues((), ())
        if isinstance(judged, CritiqueJudgement):
            raised = issues.raise_issues(
                "critic", judged.raw_issues, context.answer, context.issues
            )
        merged = (*context.issues, *raised.issues)
        verdict = apply_critique_rules(
            judged, context.citation_audit, merged, self.judged_by, raised.notes
        )
        output = critique_of(verdict, merged)
        return dspy.Prediction(
            **dict(output), critic_issues=raised.issues, found=merged, verdict=verdict
        )


class RevisionAgent(Agent):
    """Improves an answer by the issues of a critique (REQ-CRITIC-008)."""

    role: Role = "reviser"
    temperature = 0.3

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.revision = dspy.Predict(signature_of(self.role))

    def forward(
        self,
        original_answer: str,
        critique: Any,
        original_query: str,
        evidence_chunks: Chunks,
        iteration_number: int = 1,
    ) -> Any:
        """Return a revision with the fields of ``RevisionAgentOutput``.

        ``critique`` is a ``CriticAgent``'s prediction, or has ``issues`` and ``critique_reasoning``
        in the spec's format. Raises ReviserFailed, InvalidRevision or ProviderFailed if there is no
        revision.
        """
        context = self._audit_context(
            original_answer, original_query, evidence_chunks, iteration_number, None
        )
        fields = dict(critique)
        verdict, listed = fields.get("verdict"), tuple(fields.get("found") or ())
        if verdict is None:
            listed = tuple(
                _parse_issue(issue, number)
                for number, issue in enumerate(fields.get("issues") or (), 1)
            )
            verdict = apply_critique_rules(
                Unscored(reason="given"), context.citation_audit, listed, self.judged_by
            )
            verdict = verdict.model_copy(
                update={"critique_reasoning": fields.get("critique_reasoning") or ""}
            )
        revision = self.in_run().revise(context, verdict, listed)
        output = RevisionAgentOutput.model_validate(revision, from_attributes=True)
        return dspy.Prediction(**dict(output), revision=revision)


def _parse_issue(raw: Any, number: int) -> Issue:
    """Convert an issue from outside, which uses the field names of the spec or ours."""
    fields: Mapping[str, Any] = raw if isinstance(raw, Mapping) else raw.model_dump(mode="json")
    name, kind = str(fields.get("id", f"i{number}")), fields.get("issue_type", fields.get("type"))
    return Issue(
        id=name,
        key=name,
        source="critic",
        type=kind if kind in get_args(IssueType) else "factual",
        rule="given",
        severity=fields.get("severity", "medium"),
        description=fields.get("description", ""),
        reason=fields.get("reasoning", fields.get("reason", "")),
        suggestion=fields.get("suggestion", ""),
        quote=fields.get("location", fields.get("quote")),
    )


class MultiAgentCriticLoop(dspy.Module):
    """Improves an answer until it converges, and returns the best version.

    ``settings`` choose everything else: the verifier of claims (offline by default), penalties and
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
        """Return the fields of ``CriticLoopOutput``, and the complete audit as ``run``.

        If an agent fails, the loop ends with the best answer so far and ``termination_reason``
        "error", without an exception (REQ-CRITIC-030, 031). Raises InputError for invalid evidence.
        """
        settings = self._settings(max_iterations, improvement_threshold)
        case = Case(
            id="dspy",
            query=original_query,
            answer=initial_answer,
            evidence=evidence_of(evidence_chunks, "evidence_chunks"),
            reasoning_steps=tuple(reasoning_steps or ()),
        )
        run = run_to_completion(
            loop.audit(
                case,
                self._roles(settings),
                settings,
                run_id=loop.new_run_id(),
                case_digest=case.digest(),
                cancelled=cancelled,
            )
        )
        return dspy.Prediction(
            **dict(CriticLoopOutput.model_validate(run, from_attributes=True)), run=run
        )

    async def aforward(self, *arguments: Any, **keywords: Any) -> Any:
        """Run ``forward`` on a thread of its own, and stop if the task is cancelled."""

        def run(cancelled: Callable[[], bool]) -> Any:
            return self.forward(*arguments, **(keywords | {"cancelled": cancelled}))

        return await cancellable(run, partial(start_in_thread, name="critic loop"))

    def _settings(
        self, max_iterations: int | None, improvement_threshold: float | None
    ) -> Settings:
        limits = {
            "max_iterations": self.max_iterations if max_iterations is None else max_iterations,
            "improvement_threshold": self.improvement_threshold
            if improvement_threshold is None
            else improvement_threshold,
        }
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
