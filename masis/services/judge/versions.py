"""Write judge versions, try what they cost, and adopt or drop them.

A version is a draft until a lead adopts or drops it. Audits use the adopted version, and a draft
only if their settings name it (``Settings.judge``). Runs record the version and the digest of its
content, so results of exams and guarantees count only for the content they were made with.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import reduce

from masis.api.roles import check_models
from masis.audit.house_rules import assert_pattern
from masis.errors import InputError, MasisError
from masis.llm.estimates import CostEstimate, estimate
from masis.schema.actor import Actor
from masis.schema.base import utc_now
from masis.schema.judge import (
    DEFAULT_JUDGE,
    JudgeContent,
    JudgeExample,
    JudgeVersion,
    question_id,
)
from masis.services.access import OPEN, Access, Service, requires
from masis.services.judge.briefs import JudgeBriefs
from masis.services.reviews import name_of
from masis.settings import Settings
from masis.store import Store

WRITE_VERSIONS = "write judge versions"
ADOPT_VERSIONS = "adopt, drop or retire judge versions"
"""Acts of several use cases."""


class JudgeService(Service):
    """The use cases of judge versions. ``settings`` are those of audits."""

    def __init__(self, store: Store, settings: Settings, access: Access = OPEN) -> None:
        super().__init__(store, access)
        self._settings, self._briefs = settings, JudgeBriefs(store)

    # Reading

    @requires("read")
    def versions(self, actor: Actor) -> tuple[JudgeVersion, ...]:
        """Return all versions, newest first."""
        return tuple(map(self._as_seen, self._store.judges.all()))

    @requires("read")
    def get(self, actor: Actor, name: str) -> JudgeVersion:
        """Return a version by its id or its name.

        Raises:
            UnknownRecord: There is no such version.

        """
        return self._as_seen(self._store.judges.get(name))

    @requires("read")
    def find_adopted(self, actor: Actor) -> JudgeVersion | None:
        """Return the version that audits use, or None while they use the default judge."""
        version = self._store.judges.find_adopted()
        return None if version is None else self._as_seen(version)

    @requires("read")
    def examples(self, actor: Actor, name: str) -> tuple[JudgeExample, ...]:
        """Return the examples of a version's rules with their texts, in the order of the rules.

        Cases that aren't decided any more are left out, so that nobody sees what others decided
        before a case was opened again.

        Raises:
            UnknownRecord: There is no such version.

        """
        rules = self._store.judges.get(name).content.rules
        named = [(rule.id, example) for rule in rules for example in rule.examples]
        found = {
            example.case_id: example
            for example in self._store.judges.examples([example.case_id for _, example in named])
        }
        return tuple(
            found[example.case_id].model_copy(update={"rule": rule_id, "breaks": example.breaks})
            for rule_id, example in named
            if example.case_id in found
        )

    @requires("read")
    def estimate(self, actor: Actor, name: str, case_ids: Sequence[str]) -> CostEstimate:
        """Return the most that audits of these cases by a version may need, before they start.

        Args:
            actor: The person who wants to try the version.
            name: The id or the name of the version, or ``none`` for the default judge.
            case_ids: The cases to audit.

        Raises:
            UnknownRecord: There is no such version or case.
            SettingsError: A model can't be asked.

        """
        settings = self._briefs.pin(self._settings.model_copy(update={"judge": name}))
        longest = self._briefs.longest(settings)
        costs = (estimate(self._store.cases.get(name), settings, longest) for name in case_ids)
        return reduce(CostEstimate.plus, costs, CostEstimate())

    # Writing

    @requires("oversee", WRITE_VERSIONS)
    def draft(
        self,
        actor: Actor,
        name: str,
        content: JudgeContent | None = None,
        *,
        note: str = "",
        based_on: str | None = None,
    ) -> JudgeVersion:
        """Write a new draft.

        Args:
            actor: The lead who writes it.
            name: Its name, which no other version has.
            content: What it tells the judge; that of ``based_on`` if None.
            note: Why it was written.
            based_on: The id or the name of the version that it is copied from.

        Raises:
            InputError: The content can't be used, as for ``change``.
            UnknownRecord: There is no version ``based_on``.
            Conflict: Another version has the name.

        """
        base = self._store.judges.get(based_on) if based_on is not None else None
        content = content or (base.content if base else JudgeContent())
        self._check(content)
        now = utc_now()
        version = JudgeVersion(
            id=secrets.token_hex(6),
            name=_valid_name(name),
            digest=content.digest,
            author=name_of(actor),
            created_at=now,
            changed_at=now,
            content=content,
            note=note,
            based_on=base.id if base else None,
        )
        self._store.judges.add(version)
        return version

    @requires("oversee", WRITE_VERSIONS)
    def change(
        self,
        actor: Actor,
        name: str,
        content: JudgeContent | None = None,
        *,
        new_name: str | None = None,
        note: str | None = None,
    ) -> JudgeVersion:
        """Change a draft. What is None stays.

        Raises:
            InputError: A pattern can't be used, an example isn't a decided case or belongs to a
                held-out question, or the compiled critic doesn't exist.
            UnknownRecord: There is no such version.
            Conflict: It isn't a draft any more, or another version has the name.

        """
        version = self._store.judges.get(name)
        content = content or version.content
        self._check(content)
        changed = version.model_copy(
            update={
                "name": version.name if new_name is None else _valid_name(new_name),
                "note": version.note if note is None else note,
                "content": content,
                "digest": content.digest,
                "changed_at": utc_now(),
            }
        )
        self._store.judges.change(changed)
        return changed

    @requires("oversee", ADOPT_VERSIONS)
    def adopt(self, actor: Actor, name: str) -> JudgeVersion:
        """Let audits use a draft, or a retired version again. The one before is retired.

        Exams and guarantees of the judge before don't count for the new one.

        Raises:
            InputError: The version tells the judge nothing.
            UnknownRecord: There is no such version.
            Conflict: It was dropped, or it is adopted already.

        """
        version = self._store.judges.get(name)
        if version.content.is_empty:
            raise InputError(
                f"{version.name!r} tells the judge nothing",
                hint="Add a rule, a severity or examples first.",
                field="name",
            )
        self._check(version.content)
        return self._store.judges.set_state(version.id, "adopted", name_of(actor))

    @requires("oversee", ADOPT_VERSIONS)
    def drop(self, actor: Actor, name: str) -> JudgeVersion:
        """Drop a draft, which stays on record.

        Raises:
            UnknownRecord: There is no such version.
            Conflict: It isn't a draft.

        """
        version = self._store.judges.get(name)
        return self._store.judges.set_state(version.id, "dropped", name_of(actor))

    @requires("oversee", ADOPT_VERSIONS)
    def retire(self, actor: Actor, name: str) -> JudgeVersion:
        """Return to the default judge.

        Raises:
            UnknownRecord: There is no such version.
            Conflict: It isn't the adopted one.

        """
        version = self._store.judges.get(name)
        return self._store.judges.set_state(version.id, "retired", name_of(actor))

    def _as_seen(self, version: JudgeVersion) -> JudgeVersion:
        """Return a version without the examples whose cases aren't decided now.

        A case that was opened again is open to other reviewers, who mustn't learn from here that
        and how it was decided.
        """
        content = version.content
        decided = self._store.judges.decided_among(content.all_example_cases)
        rules = tuple(
            rule.model_copy(
                update={
                    "examples": tuple(
                        example for example in rule.examples if example.case_id in decided
                    )
                }
            )
            for rule in content.rules
        )
        cases = tuple(case_id for case_id in content.example_cases if case_id in decided)
        seen = content.model_copy(update={"rules": rules, "example_cases": cases})
        return version.model_copy(update={"content": seen})

    def _check(self, content: JudgeContent) -> None:
        """Raise InputError if a content can't be used."""
        for rule in content.rules:
            if rule.check is not None and rule.check.kind == "pattern":
                assert_pattern(rule.check.text)
        named = content.all_example_cases
        decided = {example.case_id for example in self._store.judges.examples(named)}
        records = self._store.systems.question_records(named)
        for case_id in named:
            if case_id not in decided:
                raise InputError(
                    f"{case_id!r} isn't a decided case",
                    hint=(
                        "An example needs a person's decision about its original answer, and all"
                        " decisions that its policy wants."
                    ),
                    field="examples",
                )
            if question_id(records[case_id]) in content.held_out:
                raise InputError(
                    f"the question of {case_id!r} is held out",
                    hint="Choose an example from the other half.",
                    field="examples",
                )
        if content.critic:
            try:
                check_models(
                    self._settings.model_copy(
                        update={"critic": content.critic, "judge": DEFAULT_JUDGE}
                    )
                )
            except MasisError as error:
                raise InputError(
                    f"can't be the critic: {error}",
                    hint="List critics with 'masis models'.",
                    field="critic",
                ) from error


def _valid_name(name: str) -> str:
    """Return a name that no setting means otherwise.

    Raises:
        InputError: The setting ``judge`` would read it as something else.

    """
    if name.strip().casefold() == DEFAULT_JUDGE:
        raise InputError(
            f"{name!r} means the default judge", hint="Choose another name.", field="name"
        )
    return name.strip()
