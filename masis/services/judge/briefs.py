"""The judge's guidance for one case: the version that the settings name, and its examples.

Examples never include the case itself, another answer to its question, a nearly equal answer, or a
case of a held-out question. Otherwise a version would be measured on what it was shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from masis.llm.roles.house import MAX_ANSWER, MAX_QUESTION, MAX_REASON
from masis.offline.inference.encoder import load_encoder
from masis.schema.case import Case
from masis.schema.judge import (
    DEFAULT_JUDGE,
    JudgeBrief,
    JudgeContent,
    JudgeExample,
    JudgeUse,
    question_id,
)
from masis.settings import Settings
from masis.store import Store

MAX_RULE_EXAMPLES = 24
"""The maximum number of rule examples sent with a case, in the order of the rules."""

SHORTLIST_SIZE = 40
"""How many cases with words of the question are compared by meaning, at about 5 ms each."""

NEARLY_EQUAL = 0.9
"""The Jaccard similarity of words from which two answers count as near-duplicates."""

_WORD = re.compile(r"\w+")
_MAX_ENCODED_CHARS = 1_000


class JudgeBriefs:
    """Finds the judge version that settings name, and what it tells about a case.

    It checks no permission, because audits use it regardless of who starts them.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._contents: dict[str, JudgeBrief] = {}
        """Briefs without examples by ``id@digest``, whose content never changes."""

    def pin(self, settings: Settings) -> Settings:
        """Return the settings with the exact content of the judge version, ``id@digest``, and with
        the compiled critic that it names.

        A draft may be changed while audits wait, and another version may be adopted. Pinned
        settings stay as they are.

        Raises:
            UnknownRecord: The settings name a version that doesn't exist.

        """
        if not settings.judge:
            pinned = self._store.judges.find_adopted_pin() or DEFAULT_JUDGE
        elif settings.judge == DEFAULT_JUDGE or "@" in settings.judge:
            pinned = settings.judge
        else:
            pinned = self._store.judges.get(settings.judge).pinned
        update = {"judge": pinned}
        if pinned != DEFAULT_JUDGE and (critic := self._brief_of(pinned).content.critic):
            update["critic"] = critic
        return settings.model_copy(update=update)

    def without_examples(self, settings: Settings) -> JudgeBrief | None:
        """Return the judge's guidance about every case; None for the default judge.

        Raises:
            UnknownRecord: The settings name a version that doesn't exist.

        """
        pinned = self.pin(settings)
        return self._brief_of(pinned.judge) if pinned.names_judge else None

    def _brief_of(self, pinned: str) -> JudgeBrief:
        if pinned not in self._contents:
            version_id, _, digest = pinned.partition("@")
            content = self._store.judges.content(version_id, digest)
            use = JudgeUse(
                id=version_id, name=self._store.judges.get(version_id).name, digest=digest
            )
            self._contents[pinned] = JudgeBrief(use=use, content=content)
        return self._contents[pinned]

    def brief(self, case: Case, settings: Settings) -> JudgeBrief | None:
        """Return the judge's guidance for a case; None for the default judge.

        Only a model reads examples, so the offline critic gets none.

        Raises:
            UnknownRecord: The settings name a version that doesn't exist.

        """
        settings = self.pin(settings)
        brief = self.without_examples(settings)
        if brief is None or settings.model_refs()["critic"].is_offline:
            return brief
        examples = self._examples(case, brief.content)
        use = brief.use.model_copy(
            update={"examples": tuple(dict.fromkeys(example.case_id for example in examples))}
        )
        return brief.model_copy(update={"use": use, "examples": examples})

    def longest(self, settings: Settings) -> JudgeBrief | None:
        """Return a brief with the most and longest examples a case can get, for cost estimates.

        Finding the examples of a case takes 0.3 s, which is too long for the estimate of a trial.

        Raises:
            UnknownRecord: The settings name a version that doesn't exist.

        """
        brief = self.without_examples(settings)
        if brief is None:
            return None
        content = brief.content
        named = sum(len(rule.examples) for rule in content.rules if rule.check is None)
        similar = min(content.examples_shown, len(content.example_cases))
        longest = JudgeExample(
            case_id="longest",
            query="x" * MAX_QUESTION,
            answer="x" * MAX_ANSWER,
            verdict="override",
            reason="x" * MAX_REASON,
        )
        return brief.model_copy(
            update={"examples": (longest,) * (min(named, MAX_RULE_EXAMPLES) + similar)}
        )

    def _examples(self, case: Case, content: JudgeContent) -> tuple[JudgeExample, ...]:
        """Return the examples that rules name, then the most similar of the others."""
        named = [
            (rule.id, example)
            for rule in content.rules
            if rule.check is None
            for example in rule.examples
        ]
        found = {
            example.case_id: example
            for example in self._usable(case, content, [example.case_id for _, example in named])
        }
        of_rules = [
            found[example.case_id].model_copy(update={"rule": rule_id, "breaks": example.breaks})
            for rule_id, example in named
            if example.case_id in found
        ][:MAX_RULE_EXAMPLES]
        shown = {example.case_id for example in of_rules}
        others = [case_id for case_id in content.example_cases if case_id not in shown]
        if not content.shows_examples or not others:
            return tuple(of_rules)
        similar = self._store.judges.with_similar_words(case.query, others, SHORTLIST_SIZE)
        ranked = _by_similarity(case, self._usable(case, content, similar))
        return (*of_rules, *ranked[: content.examples_shown])

    def _usable(
        self, case: Case, content: JudgeContent, case_ids: Sequence[str]
    ) -> list[JudgeExample]:
        """Return the decided cases among ``case_ids`` that may serve as examples for ``case``."""
        systems = self._store.systems
        refused = {question_id(systems.question_record(case)), *content.held_out}
        records = systems.question_records(case_ids)
        return [
            example
            for example in self._store.judges.examples(case_ids)
            if example.case_id != case.id
            and example.answer.strip()
            and question_id(records[example.case_id]) not in refused
            and not _are_nearly_equal(example.answer, case.answer or "")
        ]


def _are_nearly_equal(one: str, other: str) -> bool:
    words, others = set(_WORD.findall(one.casefold())), set(_WORD.findall(other.casefold()))
    return bool(words | others) and len(words & others) >= NEARLY_EQUAL * len(words | others)


def _by_similarity(case: Case, examples: Sequence[JudgeExample]) -> list[JudgeExample]:
    """Return the examples by similarity of meaning of question and answer, most similar first."""
    if not examples:
        return []
    encoder = load_encoder()
    texts = [
        (case.query, case.answer or ""),
        *((example.query, example.answer) for example in examples),
    ]
    vectors = np.array(
        [encoder.encode(f"{query}\n{answer}"[:_MAX_ENCODED_CHARS]) for query, answer in texts],
        dtype=np.float64,
    )
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    order = np.argsort(-(vectors[1:] @ vectors[0]), kind="stable")
    return [examples[index] for index in order]
