"""Estimates the most calls, tokens and dollars that an audit may need, before it starts.

Tokens are estimated as characters / 4, which holds for English prose within a fifth, and replies by
the usual length of each role's replies. Every iteration that the settings allow is counted, so a
run rarely costs more. Most runs cost less, because the loop stops early and providers cache the
shared parts of prompts; neither is counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, reduce
from typing import NamedTuple

from pydantic import BaseModel

from masis.audit.escalation import Savings
from masis.llm import prices, registry
from masis.llm.client import schemas
from masis.llm.providers.base import TokenUsage
from masis.llm.roles import replies
from masis.llm.roles.house import house_characters
from masis.llm.roles.prompting import FRAME, load
from masis.schema.case import Case, Evidence
from masis.schema.judge import JudgeBrief
from masis.settings import Settings

CHARACTERS_PER_TOKEN = 4
CHARACTERS_PER_CLAIM = 110
"""Characters of an answer per claim, about one sentence."""
DRAFTED_CHARACTERS = 1_200
"""The assumed length of an answer that isn't written yet, in characters."""
REPLY_TOKENS = {"critic": 300, "evaluator": 120, "completeness": 100}
VERDICT_TOKENS, CLAIM_TOKENS = 80, 25
_SHAPES: dict[str, type[BaseModel]] = {
    "claims": replies.CheckedClaimsReply,
    "claims_extract": replies.ClaimsReply,
    "claims_verify": replies.VerdictsReply,
    "completeness": replies.CompletenessReply,
    "critic": replies.CritiqueReply,
    "evaluator": replies.EvaluationReply,
    "reviser": replies.RevisionReply,
    "drafter": replies.DraftReply,
}
"""The reply that each prompt asks for; its schema is sent with every call."""


class CostEstimate(NamedTuple):
    """Calls and tokens (sent and received); ``cost_usd`` is None if a price isn't known."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0

    def plus(self, other: CostEstimate) -> CostEstimate:
        """Return the sum of both estimates."""
        is_known = self.cost_usd is not None and other.cost_usd is not None
        cost = (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if is_known else None
        return CostEstimate(self.calls + other.calls, self.tokens + other.tokens, cost)


class _EstimatedCalls(NamedTuple):
    """Calls of one kind in one iteration.

    ``sent`` is in characters and excludes the instructions of ``prompt``; ``received`` is in
    tokens.
    """

    role: str
    prompt: str
    times: int
    sent: float
    received: float


def estimate(case: Case, settings: Settings, judge: JudgeBrief | None = None) -> CostEstimate:
    """Return the most that an audit of this case may need; offline roles cost nothing.

    ``judge`` has house rules and examples, which are sent with each call of the critic. Raises the
    errors of ``registry.resolve``.
    """
    settings = settings.at_depth()
    if case.unanswered is not None and not settings.draft_unanswered:
        return CostEstimate()
    iterations = settings.max_iterations
    shared = sum(len(chunk.text) + 120 for chunk in case.evidence) + len(case.query)
    is_drafted = not (case.answer or "").strip()
    answer = DRAFTED_CHARACTERS if is_drafted else len(case.answer or "")
    calls = [
        calls_of_step._replace(
            times=calls_of_step.times
            * (iterations - 1 if calls_of_step.role == "reviser" else iterations)
        )
        for calls_of_step in _calls_of_iteration(shared, answer, settings)
    ]
    if judge is not None:
        added = house_characters(judge)
        calls = [
            calls_of_step._replace(sent=calls_of_step.sent + added)
            if calls_of_step.role == "critic"
            else calls_of_step
            for calls_of_step in calls
        ]
    if is_drafted:
        calls.append(
            _EstimatedCalls("drafter", "drafter", 1, shared, answer / CHARACTERS_PER_TOKEN)
        )
    return reduce(
        CostEstimate.plus, (_price_calls(calls_of_step, settings) for calls_of_step in calls)
    )


def _calls_of_iteration(shared: int, answer: int, settings: Settings) -> list[_EstimatedCalls]:
    claims = max(1, math.ceil(answer / CHARACTERS_PER_CLAIM)) if settings.check_factual else 0
    batches = math.ceil(claims / settings.claims_batch)
    characters, answer_tokens = shared + answer, answer / CHARACTERS_PER_TOKEN
    characters_per_batch, verdicts = (
        shared + answer / max(1, batches),
        VERDICT_TOKENS * settings.claims_batch,
    )
    # After the offline checks, which find the claims and missing points, a model only judges.
    is_only_verifier = not settings.model_refs()["verifier"].after_offline
    completeness_calls = int(settings.check_completeness and is_only_verifier)
    in_one_call = is_only_verifier and 0 < claims <= settings.claims_batch
    extractions = int(bool(claims) and is_only_verifier and not in_one_call)
    critics = 0 if settings.depth == "quick" else settings.judge_samples
    judges = 0 if settings.evaluate == "never" else settings.judge_samples
    rechecks = batches if settings.depth == "thorough" and is_only_verifier else 0
    claim_tokens = claims * (CLAIM_TOKENS + VERDICT_TOKENS)
    verifications, completions = (
        (rechecks, 0) if in_one_call else (rechecks + batches, completeness_calls)
    )
    missing_tokens = REPLY_TOKENS["completeness"]
    return [
        _EstimatedCalls("verifier", "claims", int(in_one_call), characters, claim_tokens),
        _EstimatedCalls("verifier", "claims_extract", extractions, answer, claims * CLAIM_TOKENS),
        _EstimatedCalls("verifier", "claims_verify", verifications, characters_per_batch, verdicts),
        _EstimatedCalls("verifier", "completeness", completions, characters, missing_tokens),
        _EstimatedCalls("critic", "critic", critics, characters, REPLY_TOKENS["critic"]),
        _EstimatedCalls("evaluator", "evaluator", judges, characters, REPLY_TOKENS["evaluator"]),
        _EstimatedCalls("reviser", "reviser", 1, characters + 1_500, answer_tokens + 300),
    ]  # fmt: skip


def estimate_savings(
    query: str,
    answer: str,
    evidence: Sequence[Evidence],
    claims: int,
    judged: int,
    completeness: bool,
    settings: Settings,
) -> Savings:
    """Return the calls that the second verifier made, and those that the first one saved.

    Without the first verifier, the second would also have found the claims and, with
    ``completeness``, the missing points.

    Args:
        query: The question.
        answer: The answer.
        evidence: The evidence that is sent with every call.
        claims: The number of claims in the answer.
        judged: The number of claims that the second verifier judged.
        completeness: Whether missing points were asked for.
        settings: The settings that name the second verifier.

    """
    batches, judged_batches = (
        math.ceil(number / settings.claims_batch) for number in (claims, judged)
    )
    shared = sum(len(chunk.text) + 120 for chunk in evidence) + len(query)
    sent = shared + len(answer) / max(1, batches)
    # The second verifier alone would have found and judged so few claims in one call.
    if claims <= settings.claims_batch:
        return Savings(
            judged_batches,
            1 - judged_batches,
            _price_calls(
                _EstimatedCalls("verifier", "claims", 1 - judged_batches, sent, 0), settings
            ).cost_usd,
        )
    saved = [
        _EstimatedCalls(
            "verifier",
            "claims_extract",
            int(settings.check_factual),
            len(answer),
            claims * CLAIM_TOKENS,
        ),
        _EstimatedCalls(
            "verifier",
            "claims_verify",
            batches - judged_batches,
            sent,
            VERDICT_TOKENS * settings.claims_batch,
        ),
        _EstimatedCalls(
            "verifier",
            "completeness",
            int(completeness),
            shared + len(answer),
            REPLY_TOKENS["completeness"],
        ),
    ]
    total = reduce(CostEstimate.plus, (_price_calls(calls, settings) for calls in saved))
    return Savings(judged_batches, total.calls, total.cost_usd)


def _price_calls(calls: _EstimatedCalls, settings: Settings) -> CostEstimate:
    ref = settings.model_refs()[calls.role]
    model = registry.asked_model(ref, calls.role, settings) if calls.times else None
    if model is None:
        return CostEstimate()
    plugin = registry.find_judge(ref, calls.role, settings).plugin
    instructions = plugin.characters if plugin else _instruction_characters(calls.prompt)
    sent = round((calls.sent + instructions) / CHARACTERS_PER_TOKEN) * calls.times
    received = round(calls.received) * calls.times
    tokens = TokenUsage(prompt=sent, completion=received)
    return CostEstimate(
        calls.times, sent + received, prices.cost(tokens, prices.price(str(model), settings.prices))
    )


@cache
def _instruction_characters(prompt: str) -> int:
    file, shape = load(prompt), _SHAPES.get(prompt)
    schema = len(schemas.reply_schema(shape).text) if shape else 0
    return len(load(FRAME).before) + len(file.before) + len(file.after) + schema


def unpriced_models(settings: Settings) -> tuple[str, ...]:
    """Return the models of the settings whose price isn't known."""
    models = {
        str(model)
        for role, ref in settings.model_refs().items()
        if (model := registry.asked_model(ref, role, settings))
    }
    return tuple(sorted(model for model in models if prices.price(model, settings.prices) is None))
