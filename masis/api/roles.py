"""Fills the roles of an audit as the settings name them; tells what that costs and
where texts go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from masis.api.exam_results import ExamResults, build_examinee, find_unexamined_name
from masis.audit import loop, output_validation
from masis.audit.checks import checks_named
from masis.audit.control.run_control import RunControl
from masis.audit.escalation import EscalatingVerifier, Savings
from masis.audit.sampling import SampledCritic, SampledEvaluator
from masis.audit.text.language import innermost, within_languages
from masis.errors import MasisError, MissingExtra, SettingsError
from masis.llm import endpoints, estimates, registry, role_plugins
from masis.llm.client.model import Model
from masis.llm.recordings import Replies
from masis.llm.roles.critic import ModelCritic
from masis.llm.roles.drafter import ModelDrafter
from masis.llm.roles.evaluator import ModelEvaluator
from masis.llm.roles.reviser import ModelReviser
from masis.llm.roles.verifier import EXTRACTIONS, Extractions, ModelVerifier
from masis.offline.matching.key_points import VERSION as OFFLINE_RULES
from masis.offline.roles.critic import OfflineCritic
from masis.offline.roles.drafter import OfflineDrafter
from masis.offline.roles.evaluator import OfflineEvaluator
from masis.offline.roles.reviser import OfflineReviser
from masis.offline.roles.verifier import OfflineVerifier
from masis.schema.audit import Claim
from masis.schema.case import Evidence
from masis.schema.exam import ExamStanding, joined_name
from masis.schema.judge import JudgeBrief
from masis.schema.model_ref import STAGES, ModelRef
from masis.schema.providers import ProviderSettings
from masis.settings import OFFLINE, ROLES, Settings

resolve_model = registry.resolve
estimate = estimates.estimate
unpriced_models = estimates.unpriced_models


def build_roles(
    settings: Settings,
    replies: Replies | None = None,
    *,
    in_steps: bool = False,
    judge: JudgeBrief | None = None,
) -> loop.Roles:
    """Build the five roles as the settings name them, for one run.

    Args:
        settings: The settings that name the roles' models.
        replies: Recorded replies, which are looked up before a model is asked.
        in_steps: Whether a model is asked for claims, verdicts and missing points in separate
            calls.
        judge: What a team tells the judge about the case; None for the default judge.

    Raises:
        SettingsError: A model can't be asked, because it is unknown or has no key; or a check isn't
            installed.
        MissingExtra: The SDK of a model, or the output validator, is not installed.

    """
    settings = settings.at_depth()
    checks_named(settings.checks)
    control = RunControl()
    ask = partial(registry.model_in_role, control=control, settings=settings, replies=replies)
    models = {
        role: registry.resolve(string, role, settings) for role, string in settings.models().items()
    }

    def fill(role: str, with_model: Callable[[Model], Any], by_rules: Callable[[], Any]) -> Any:
        """Return the object that fills the role: rules, a plug-in, or a role around a model."""
        judge = registry.find_judge(ModelRef.parse(models[role]), role, settings)
        if judge.ref.is_offline:
            return by_rules()
        if judge.plugin:
            return judge.plugin.build(
                ask(str(judge.model), role) if judge.model else None, settings
            )
        return with_model(ask(models[role], role))

    verifier = _verifier(ModelRef.parse(models["verifier"]), control, settings, ask, in_steps)
    if settings.depth == "thorough" and isinstance(verifier, ModelVerifier):
        verifier = _with_second_opinion(verifier, models, settings, ask)
    temperature = settings.sample_temperature if settings.judge_samples > 1 else 0.0
    drafter = fill("drafter", ModelDrafter, OfflineDrafter)
    critic = fill("critic", lambda model: ModelCritic(model, temperature), OfflineCritic)
    if judge is not None and isinstance(critic, ModelCritic):
        critic = replace(critic, brief=judge)
    reviser = fill("reviser", ModelReviser, OfflineReviser)
    evaluator = fill(
        "evaluator", lambda model: ModelEvaluator(model, settings, temperature), OfflineEvaluator
    )
    sampled = settings.judge_samples > 1  # deterministic roles would give the same result each time
    by_role = (drafter, innermost(verifier), critic, reviser, evaluator)
    prompts: dict[str, str] = {
        role: filler.judged_by.version
        for role, filler in zip(ROLES, by_role, strict=True)
        if not isinstance(
            filler,
            OfflineDrafter | OfflineVerifier | OfflineCritic | OfflineReviser | OfflineEvaluator,
        )
    }
    refs = [ModelRef.parse(model) for model in models.values()]
    uses_offline_rules = any(ref.is_offline or ref.after_offline for ref in refs)
    offline_rules = OFFLINE_RULES if uses_offline_rules else None
    digest = judge.use.digest if judge else ""
    return loop.Roles(
        drafter=drafter,
        verifier=verifier,
        critic=(
            SampledCritic(critic, settings.judge_samples)
            if sampled and not isinstance(critic, OfflineCritic)
            else critic
        ),
        reviser=reviser,
        evaluator=(
            SampledEvaluator(evaluator, settings.judge_samples)
            if sampled and isinstance(evaluator, ModelEvaluator)
            else evaluator
        ),
        models=models,
        offline_rules=offline_rules,
        control=control,
        calls_models=uses_models(settings) or any(ref.is_replay for ref in refs),
        validator=output_validation.validator_named(settings.output_validator),
        local_models=tuple(
            model for filler in by_role if (model := getattr(filler, "local_model", None))
        ),
        prompts=prompts,
        unexamined=find_unexamined_name(
            build_examinee(models, prompts, offline_rules, settings, judge=digest), settings
        ),
        judge=judge,
    )


def exam_standing(settings: Settings, judge: JudgeBrief | None = None) -> ExamStanding:
    """Return what is known about the judging models of these settings: whether and when they passed
    the exam, with the house rules of a judge version.

    Loads no weights and asks no model.

    Raises:
        MasisError: A model can't be asked.
        InputError: The file of results can't be read.

    """
    settings = settings.at_depth()
    verifier = registry.find_judge(settings.model_refs()["verifier"], "verifier", settings)
    local = None if verifier.model else verifier.plugin
    roles = build_roles(
        settings.model_copy(update={"verifier": OFFLINE}) if local else settings, judge=judge
    )
    models, prompts = roles.models, roles.prompts
    if local:
        local.check()
        models, prompts = (
            models | {"verifier": local.string},
            prompts | {"verifier": local.recorded},
        )
    offline_rules = OFFLINE_RULES if OFFLINE in models.values() else None
    digest = judge.use.digest if judge else ""
    return ExamResults(settings.exam_results).standing(
        build_examinee(models, prompts, offline_rules, settings, judge=digest)
    )


def examined_models(settings: Settings) -> tuple[tuple[str, ExamStanding], ...]:
    """Return all examined models by name, with the value of their newest result under these
    settings.
    """
    newest = {
        joined_name(result.models): result for result in ExamResults(settings.exam_results).all()
    }
    examined = []
    for name, result in newest.items():
        try:
            standing = exam_standing(settings.model_copy(update=result.models))
        # Its provider, key or file is gone, so it can't be used either.
        except MasisError:
            standing = ExamStanding(earlier=result, differs="address")
        examined.append((name, standing))
    return tuple(examined)


def _verifier(
    ref: ModelRef,
    control: RunControl,
    settings: Settings,
    ask: Callable[[str, str], Model],
    in_steps: bool,
) -> Any:
    """Return the verifier of a resolved model string: a single one, or two in a row."""
    if ref.after_offline:
        stages = (ModelRef(OFFLINE), ref.alone)
        first, second = (_verifier(stage, control, settings, ask, in_steps) for stage in stages)
        names = (OFFLINE, str(ref.alone))
        if getattr(second, "local_model", None):
            return EscalatingVerifier(first, second, names)
        savings = partial(estimates.estimate_savings, settings=settings)
        return EscalatingVerifier(first, second, names, savings)
    judge = registry.find_judge(ref, "verifier", settings)
    if ref.is_offline:
        return within_languages(OfflineVerifier(control.cancellation))
    if judge.plugin:
        model = ask(str(judge.model), "verifier") if judge.model else None
        return within_languages(judge.plugin.build(model, settings))
    model = ask(str(ref), "verifier")
    # Don't use the extractions cached in this process while replies are recorded or replayed:
    # cached ones are not recorded and may differ from the recording.
    extractions = EXTRACTIONS if model.replies is None and model.record is None else Extractions()
    # Figures that the evidence lacks are found by rules, whatever a model says of the claim.
    figures = OfflineVerifier(control.cancellation).absent_figures
    return ModelVerifier(model, settings, extractions, in_steps, figures)


def _with_second_opinion(
    first: ModelVerifier,
    models: dict[str, str],
    settings: Settings,
    ask: Callable[[str, str], Model],
) -> EscalatingVerifier:
    """Return the verifier with the critic's model as a second verifier for the claims it leaves
    open.

    If rules criticise, the verifier's own model is asked again.
    """
    critic = registry.find_judge(ModelRef.parse(models["critic"]), "critic", settings)
    is_model = not critic.ref.is_offline and not critic.plugin
    second = models["critic" if is_model else "verifier"]
    figures = first.absent_figures
    opinion = ModelVerifier(
        ask(second, "verifier"), settings, Extractions(), in_steps=True, absent_figures=figures
    )

    def calls(
        query: str, answer: str, evidence: Sequence[Evidence], claims: int, escalated: int, _: bool
    ) -> Savings:
        return Savings(math.ceil(escalated / settings.claims_batch), 0, 0.0)

    return EscalatingVerifier(first, opinion, (models["verifier"], second), calls)


def check_models(settings: Settings) -> None:
    """Raise SettingsError or MissingExtra if a role names a model that can't be asked; ask nothing.

    The same goes for an output validator and for checks that aren't installed.
    """
    checks_named(settings.checks)
    output_validation.validator_named(settings.output_validator)
    for role, string in settings.models().items():
        resolve_model(string, role, settings)


def probe_model(string: str, settings: Settings) -> registry.ProbeResult:
    """Return whether a model can judge here, from its reply to a word, and if not, why and what to
    do.

    A model that runs on this machine judges a claim instead.
    """
    try:
        judge = registry.find_judge(ModelRef.parse(string), "verifier", settings)
        return (
            _judge_sample(judge.plugin, settings)
            if judge.plugin and not judge.model
            else registry.probe(str(judge.ref.alone), settings)
        )
    except (SettingsError, MissingExtra) as error:
        return registry.ProbeResult(False, str(error))


def _judge_sample(plugin: role_plugins.RolePlugin, settings: Settings) -> registry.ProbeResult:
    """Let a verifier that asks no model judge a sample claim."""
    text = "The bridge is 120 metres long."
    verifier = plugin.build(None, settings)
    (check,) = verifier.verify((Claim(text=text),), (Evidence(id="1", text=text),))
    if check.unscored:
        return registry.ProbeResult(False, check.unscored.reason)
    file_suffix = f": {verifier.local_model.file}" if getattr(verifier, "local_model", None) else ""
    return registry.ProbeResult(True, f"{plugin.string} judges on this machine{file_suffix}.")


def offered_models(settings: Settings, role: str = "") -> tuple[str, ...]:
    """Return the models to choose from without typing: offline, and those that can be asked now.

    For a role, this includes the critics or revisers that were compiled for it.
    """
    return (
        (*endpoints.offered_models(settings), *role_plugins.offered_plugins(role, settings))
        if role
        else endpoints.offered_models(settings)
    )


def asked_model(string: str, role: str, settings: Settings) -> str:
    """Return the model string behind a compiled critic; other strings are returned unchanged.

    Raises the errors of ``resolve_model``.
    """
    judge = registry.find_judge(ModelRef.parse(string), role, settings)
    return str(judge.model or "") if judge.plugin else string


def pin_versions(settings: Settings) -> Settings:
    """Return the settings with the versions of plugged-in critics and revisers: ``dspy:careful@2``.

    An audit by a later version then isn't taken for the same. Raises the errors of
    ``resolve_model``.
    """
    pinned = {}
    for role, ref in settings.model_refs().items():
        plugin = registry.find_judge(ref, role, settings).plugin
        if plugin:
            first_stage = f"{OFFLINE}{STAGES}" if ref.after_offline else ""
            pinned[role] = f"{first_stage}{plugin.string}"
        elif ref.is_replay:
            pinned[role] = registry.resolve(str(ref), role, settings)
    return settings.model_copy(update=pinned)


def addresses(settings: Settings) -> tuple[str, ...]:
    """Return the addresses that an audit sends question, evidence and answer to; empty if nothing
    leaves the machine.

    Raises:
        SettingsError: A model can't be asked.

    """
    check_models(settings)
    providers = [model.provider for model in _asked_models(settings)]
    return tuple(
        dict.fromkeys(endpoints.endpoint(provider, settings).address for provider in providers)
    )


def uses_models(settings: Settings) -> bool:
    """Return whether a language model fills any role.

    Raises:
        SettingsError: A model string can't be read.

    """
    return any(
        registry.find_judge(ref, role, settings).model
        for role, ref in settings.model_refs().items()
    )


def with_concurrency(settings: Settings, calls: int | None) -> Settings:
    """Return the settings with this many calls at once to each provider they use.

    None keeps the provider's own setting, or 1.
    """
    limited = {}
    for name in sorted({model.provider for model in _asked_models(settings)}):
        provider = settings.providers.get(name, ProviderSettings())
        limited[name] = provider.model_copy(
            update={"concurrency": calls or provider.concurrency or 1}
        )
    return settings.model_copy(update={"providers": settings.providers | limited})


def calls_at_once(settings: Settings) -> int:
    """Return the highest limit of calls at once among the providers that the settings use, at least
    1.
    """
    used = [
        settings.providers[model.provider]
        for model in _asked_models(settings)
        if model.provider in settings.providers
    ]
    return max((provider.concurrency or 1 for provider in used), default=1)


def _asked_models(settings: Settings) -> list[ModelRef]:
    return [
        model
        for role, ref in settings.model_refs().items()
        if (model := registry.asked_model(ref, role, settings))
    ]
