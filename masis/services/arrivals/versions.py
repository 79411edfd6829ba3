"""New versions of a case, for which a person pastes the text of evidence that had only a URL.

A stored case never changes, because runs and decisions refer to its content. The pasted text
therefore makes a new case that names the earlier one (``Case.supersedes``), and the decision log
records that it replaces the earlier one, and who made it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from masis.errors import Conflict, InputError, UnknownRecord
from masis.schema.actor import Actor
from masis.schema.case import Case, EarlierVersion
from masis.schema.wording import count_noun
from masis.services.access import Service, requires
from masis.services.cases import earlier_version, newer_version
from masis.services.reviews import entry_on_case, name_of

LONGEST_ID = 480
"""How many characters of the first version's id its versions' ids use; an id has at most 500."""

LONGEST_TEXT = 200_000
"""Maximum number of characters of one chunk's text."""

_DECIDED = ("approved", "overridden", "rejected")


class CaseVersions(NamedTuple):
    """The ids of the previous and the next version of a case, or None."""

    earlier: str | None
    newer: str | None


def fillable(case: Case) -> tuple[str, ...]:
    """Return the ids of evidence without a text, or with a text that a person pasted."""
    earlier = case.earlier_version
    filled = earlier.filled if earlier else ()
    return tuple(
        chunk.id for chunk in case.evidence if not chunk.text.strip() or chunk.id in filled
    )


def with_texts(case: Case, texts: Mapping[str, str], case_id: str, number: int) -> Case:
    """Return a new version of a case with these texts, by the ids of its evidence.

    Raises:
        InputError: No text is new, a text is too long, or an id doesn't name evidence that can be
            filled.

    """
    new = {name: text.strip() for name, text in texts.items() if text.strip()}
    refused = partial(InputError, field="evidence")
    for name, text in new.items():
        if name not in fillable(case):
            hint = f"You can add text to: {', '.join(fillable(case)) or 'none'}."
            raise refused(f"{name!r} isn't evidence without text in case {case.id!r}", hint=hint)
        if len(text) > LONGEST_TEXT:
            hint = f"Paste the part that matters, up to {LONGEST_TEXT:,}."
            raise refused(f"the text of {name!r} has {len(text):,} characters", hint=hint)
    stored = {chunk.id: chunk.text for chunk in case.evidence}
    if all(stored[name].strip() == text for name, text in new.items()):
        raise refused("no text was pasted", hint="Paste the text of at least one address.")
    earlier = case.earlier_version
    filled = {*(earlier.filled if earlier else ()), *new}
    evidence = [
        {
            **chunk.model_dump(mode="json", exclude_unset=True),
            **({"text": new[chunk.id]} if chunk.id in new else {}),
        }
        for chunk in case.evidence
    ]
    supersedes = EarlierVersion(
        id=case.id,
        digest=case.digest(),
        number=number,
        filled=tuple(chunk.id for chunk in case.evidence if chunk.id in filled),
    )
    return Case.from_stored(
        {
            **case.to_json_dict(),
            "id": case_id,
            "evidence": evidence,
            "supersedes": supersedes.model_dump(mode="json"),
        }
    )


class VersionService(Service):
    """The use cases of versions of cases."""

    @requires("audit", "add evidence to a case")
    def fill_evidence(
        self,
        actor: Actor,
        case_id: str,
        texts: Mapping[str, str],
        *,
        seen_version: int | None = None,
    ) -> Case:
        """Store and return a new version of a case with texts for its evidence.

        It replaces the earlier version. Assignments and tags are carried over. Decisions about the
        earlier version stay in the log. The new version has to be audited.

        Raises:
            InputError: No text is new, an id doesn't name evidence that lacks text, or the actor
                has no name.
            NotAllowed: The actor's role doesn't allow audits.
            UnknownRecord: There is no such case.
            CaseHeld: Another reviewer has taken the case for decision.
            StaleVersion: The case has changed since ``seen_version``.
            StoreError: It is being audited, decided or redacted, or already has a newer version.

        """
        name_of(actor)
        with self._store.transaction():
            self._assert_open(actor, case_id)
            case = self._store.cases.get(case_id)
            newer = with_texts(case, texts, *self._next_id(case))
            self._store.cases.add(newer)
            self._store.planted.carry_over(case_id, newer.id)
            self._store.relabelling.carry_over(case_id, newer.id)
            log = self._store.decisions
            log.append(
                entry_on_case(actor, case_id, "new_version", newer_case=newer.id),
                seen_version=seen_version,
            )
            work = self._store.team.work(case_id)
            if work.assignees:
                log.append(entry_on_case(actor, newer.id, "assign", assignees=work.assignees))
            if work.tags:
                log.append(entry_on_case(actor, newer.id, "tag", tags=work.tags))
            for lease in work.leases:
                self._store.team.release(case_id, lease.reviewer)
        return newer

    def neighbours(self, case: Case) -> CaseVersions:
        """Return the previous and the next version of a case, if they are stored here."""
        return CaseVersions(
            earlier=earlier_version(self._store, case), newer=newer_version(self._store, case.id)
        )

    def _assert_open(self, actor: Actor, case_id: str) -> None:
        state = self._store.cases.summary(case_id).state
        if (newer := newer_version(self._store, case_id)) is not None:
            raise Conflict(
                f"case {case_id!r} already has a newer version, {newer!r}. Paste the text there."
            )
        if state == "running":
            raise Conflict(
                f"case {case_id!r} is being audited. Stop the audit or wait for it, then paste the"
                " text."
            )
        if state == "redacted":
            raise Conflict(f"case {case_id!r} is redacted. You can't add anything to it.")
        work = self._store.team.work(case_id)
        if state in _DECIDED or (
            work.policy is not None and work.decided_by and state != "escalated"
        ):
            decisions = count_noun(max(1, len(work.decided_by)), "decision")
            raise Conflict(
                f"case {case_id!r} already has {decisions}. Undo it first, or escalate the case."
                " You can add evidence only to undecided cases."
            )
        self._store.team.assert_free(case_id, actor.name)

    def _next_id(self, case: Case) -> tuple[str, int]:
        """Return the id and number of the next version: ``ID@2``, or the next free one."""
        earlier = case.earlier_version
        # The id of version 3 is made from the first one, as ID@3 instead of ID@2@3.
        first = case.id.removesuffix(f"@{earlier.number}") if earlier else case.id
        number = (earlier.number if earlier else 1) + 1
        while True:
            try:
                # An imported case may already have this id.
                self._store.cases.summary(case_id := f"{first[:LONGEST_ID]}@{number}")
            except UnknownRecord:
                return case_id, number
            number += 1
