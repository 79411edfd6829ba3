"""Failure modes: search what people and audits wrote, group it, and apply the codes of a codebook.

The codebook is a ``TeamRecord``, so each change is a new version in the team's chain. Applying a
code is an entry in the decision log. Every read leaves out what its reader may not see yet
(``masis/store/reviews/visibility.py``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from masis.audit.measures.statistics import wilson_bounds
from masis.errors import Conflict, InputError, UnknownRecord
from masis.llm import registry
from masis.llm.roles.prompting import Asker
from masis.offline.inference.encoder import load_encoder
from masis.schema.actor import Actor
from masis.schema.base import Record
from masis.schema.codebook import (
    CaseObservation,
    Codebook,
    FailureMode,
    GroupDismissal,
)
from masis.schema.explain import explain
from masis.schema.review import LogEntry
from masis.services.access import OPEN, Access, Service, may_require, requires
from masis.services.batch_actions import BatchRequest
from masis.services.batches import BatchService
from masis.services.modes.codebooks import starting_codebooks
from masis.services.modes.concepts import Floats
from masis.services.modes.entries import code_entry, known_codes, mode_named, uncode_entry
from masis.services.modes.grouping import (
    VERSION,
    PatternText,
    group_heading,
    group_patterns,
    meaning_of,
    text_to_encode,
)
from masis.services.modes.naming import TEXTS_SENT, SuggestedName, critic_of, suggest_name
from masis.services.records import (
    AppliedCode,
    CaseFilter,
    ObservationFilter,
    ObservationPage,
)
from masis.services.reviews import name_of
from masis.settings import OFFLINE, Settings
from masis.store import Store
from masis.store.reviews.failure_modes import FACETS, Facet
from masis.store.reviews.observations import digest_pattern
from masis.trust.agreement import AgreementEstimate, UnitCounts, cohen_kappa, share

Ints = NDArray[np.int64]

MOST_APPLIED = 5_000
"""Maximum number of observations that codes are applied to in one batch. Each is an entry in the
log.
"""

_AT_ONCE = 100
"""Cases of one transaction, which takes about 100 ms of other writers' time."""

PREVIEWED = 20
"""How many observations a preview lists."""

SIMILAR_PATTERNS = 200
"""How many patterns with shared words are compared by meaning."""

SIMILAR = 0.7
"""The minimum cosine similarity for two texts to count as similar in meaning."""

FREQUENT_PATTERNS = 300
"""How many of the most frequent patterns are compared, too. Encoding one takes about 3 ms, once."""

RANKED = 20
"""How many similar texts are listed for a person to choose from."""

APPLY_CODES = "apply or remove failure modes"
ADD_MODES = "add failure modes to the codebook"
CHANGE_CODEBOOK = "change the codebook"
DISMISS_GROUPS = "dismiss proposed groups of failures"
"""Acts of several use cases."""


_CASE_BITS = 32
"""The bits of a number of a case in ``FailureModes.members``."""


_GROUPED = ObservationFilter(uncoded=True, faults_only=True, skip_explained=True)
"""The observations that are grouped by default."""


class CodebookVersion(NamedTuple):
    """A version of the codebook with its time and author."""

    at: str
    by: str
    codebook: Codebook


class ProposedGroup(Record):
    """A group of similar observations.

    The first patterns are the most typical ones. ``title`` is the kind of fault that most of them
    name, or "", and ``name`` the words that tell the group from others.
    """

    id: str
    title: str = ""
    name: str
    observations: int
    cases: int
    patterns: tuple[int, ...]

    @property
    def heading(self) -> str:
        """The title and the words."""
        return group_heading(self.title, self.name)

    @property
    def members(self) -> ObservationFilter:
        """The filter of its members that have no code yet."""
        return _GROUPED.model_copy(update={"patterns": self.patterns})


class GroupProposal(Record):
    """Proposed groups, largest first, out of a number of observations in a number of cases.

    ``ungrouped`` counts the observations in no group, and ``new`` those of them that were written
    since the groups were proposed. ``dismissed`` counts further observations, whose groups were
    dismissed.
    """

    groups: tuple[ProposedGroup, ...]
    observations: int
    cases: int
    ungrouped: int
    new: int
    dismissed: int = 0

    @property
    def is_outdated(self) -> bool:
        """Whether so many observations are new that groups should be proposed again."""
        return self.new > max(_LEAST_NEW, _SHARE_NEW * self.observations)


_LEAST_NEW = 20
_SHARE_NEW = 0.1


class DismissedGroup(NamedTuple):
    """A proposed group that a person dismissed.

    ``text`` is its most typical pattern. ``observations`` counts the faults without a code that
    aren't proposed because of it.
    """

    id: str
    at: str
    by: str
    text: str
    observations: int


class CodingPreview(Record):
    """What applying codes would change.

    Attributes:
        ids: The observations that would get the codes, at most ``MOST_APPLIED``.
        cases: The number of their cases.
        left_out: The number of matching observations that have all these codes already.
        beyond: The number of further observations, which another batch can code.
        sample: The first of them.

    """

    codes: tuple[str, ...]
    ids: tuple[str, ...]
    cases: int
    left_out: int
    beyond: int
    sample: tuple[CaseObservation, ...]


class SimilarText(NamedTuple):
    """A text that resembles an observation.

    ``row`` is its newest observation, and ``ids`` are those of all that differ from it at most in
    numbers, quotations and citation markers.
    """

    row: CaseObservation
    ids: tuple[str, ...]


class CodedBatch(Record):
    """A batch of codes that was applied: its id, and the numbers of its entries and cases."""

    batch: str
    entries: int
    cases: int


class ModeCount(Record):
    """How many cases have a mode, with one value of a facet.

    ``cases`` of ``base`` examined cases have the mode or one nested under it. ``low`` and ``high``
    are the 95% Wilson interval of this share. ``case_filter`` finds the cases in the queue.
    """

    mode: str
    value: str
    cases: int
    base: int
    low: float
    high: float
    observations: int
    case_filter: CaseFilter


class ModeTable(NamedTuple):
    """How many cases with each value of a facet have each mode, with zeros.

    Attributes:
        values: The values, those with the most examined cases first.
        examined: The number of examined cases of each value.
        cases: The number of cases of each value with a mode, by the code of the mode.
        any_mode: The number of cases of each value with some mode.

    """

    values: tuple[str, ...]
    examined: tuple[int, ...]
    cases: Mapping[str, tuple[int, ...]]
    any_mode: tuple[int, ...]


class ModeAgreement(NamedTuple):
    """How far reviewers agree about a mode on the cases that several of them decided.

    ``both`` counts the pairs of reviewers of a case who both applied it, ``one`` those of whom only
    one did, ``pairs`` all. ``agreement`` is the share of pairs in which both or neither did, and
    ``kappa`` Cohen's kappa over all pairs.
    """

    mode: str
    both: int
    one: int
    pairs: int
    agreement: AgreementEstimate
    kappa: AgreementEstimate


class ModeService(Service):
    """The use cases of failure modes.

    ``askers`` returns the language model that suggests names, by the settings.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        access: Access = OPEN,
        askers: Callable[[Settings], Asker] = critic_of,
    ) -> None:
        super().__init__(store, access)
        self._settings, self._askers = settings, askers
        self._batches = BatchService(store, access)

    # Reading

    @requires("read")
    def codebook(self, actor: Actor) -> Codebook:
        """Return the codebook in force; it is empty until somebody adds a mode."""
        return self._store.team.in_force(Codebook)

    @requires("read")
    def history(self, actor: Actor) -> tuple[CodebookVersion, ...]:
        """Return every version of the codebook, oldest first."""
        return tuple(CodebookVersion(*row) for row in self._store.team.history(Codebook))

    @requires("read")
    def search(self, actor: Actor, wanted: ObservationFilter) -> ObservationPage:
        """Return one page of the observations that match and that this person may see."""
        self._store.modes.catch_up()
        return self._store.modes.search(self._seen_by(actor, wanted))

    @requires("read")
    def list_codes(self, actor: Actor, case_id: str) -> tuple[AppliedCode, ...]:
        """Return the codes of a case and of everything in it that this person may see.

        Raises:
            UnknownRecord: There is no such case.

        """
        self._store.modes.catch_up()
        return self._store.modes.codes_of_case(case_id, actor.name)

    @requires("read")
    def groups(
        self, actor: Actor, wanted: ObservationFilter | None = None, *, again: bool = False
    ) -> GroupProposal:
        """Propose groups of similar observations; by default of faults that have no code yet.

        A reason from the list isn't grouped if its entry has a note or a label: it's the same
        fault, and they say more.

        A stored proposal keeps its groups, and only their counts follow what was written and coded
        since. New groups are proposed if many observations are in none, which takes a few seconds.

        Args:
            actor: The person who sees the groups.
            wanted: The observations to group.
            again: Whether to propose new groups in any case.

        """
        self._store.modes.catch_up()
        wanted = self._seen_by(actor, wanted or _GROUPED)
        stamp = self._store.modes.stamp(actor.name)
        filters = wanted.model_copy(update={"viewer": None, "page": 1, "size": 1})
        history = self._store.team.history(GroupDismissal)
        # A stored proposal has lost the groups that were dismissed, so a group that may be proposed
        # again needs a new one.
        restored = sum(dismissal.taken_back for *_, dismissal in history)
        parts = [VERSION, load_encoder().digest, stamp.seen_by, filters.model_dump_json(), restored]
        key = hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()
        stored = None if again else self._store.modes.find_groups(key)
        if stored is not None and stored[0] == stamp.content:
            return GroupProposal.model_validate_json(stored[1])
        members = np.array(self._store.modes.members(wanted), dtype=np.int64)
        total = len(members)
        if dismissed := self._dismissed_patterns(history):
            members = members[~np.isin(members >> _CASE_BITS, list(dismissed))]
        proposal = None
        if stored is not None:
            proposal = _recount(GroupProposal.model_validate_json(stored[1]), members)
        if proposal is None or proposal.is_outdated:
            proposal = self._propose(members)
        proposal = proposal.model_copy(update={"dismissed": total - len(members)})
        self._store.modes.save_groups(key, stamp.content, proposal.model_dump_json())
        return proposal

    @requires("read")
    def typical_texts(self, actor: Actor, groups: Iterable[ProposedGroup]) -> dict[str, str]:
        """Return the text of a member of each group, by the group's id.

        It has the group's most typical pattern that still has a member.
        """
        typical = {group.id: group.patterns[:TEXTS_SENT] for group in groups}
        patterns = tuple(pattern for some in typical.values() for pattern in some)
        wanted = _GROUPED.model_copy(update={"patterns": patterns})
        texts = self._store.modes.newest_texts(self._seen_by(actor, wanted)) if patterns else {}
        return {
            group: next((texts[pattern] for pattern in some if pattern in texts), "")
            for group, some in typical.items()
        }

    @requires("decide", DISMISS_GROUPS)
    def dismiss_group(self, actor: Actor, group: ProposedGroup) -> None:
        """Propose the texts of a group to nobody any more, until ``restore_group``.

        Texts with the same patterns that are written later aren't proposed either.

        Raises:
            InputError: The group has no texts any more.

        """
        texts = self._store.modes.pattern_texts(group.patterns)
        digests = tuple(digest_pattern(texts[seq]) for seq in group.patterns if seq in texts)
        if not digests:
            raise _outdated_group()
        own_id = hashlib.sha256(json.dumps(digests).encode()).hexdigest()[:16]
        dismissal = GroupDismissal(group=own_id, patterns=digests)
        with self._store.transaction():
            if own_id not in _in_force(self._store.team.history(GroupDismissal)):
                self._store.team.put_in_force(name_of(actor), dismissal)

    @requires("decide", DISMISS_GROUPS)
    def restore_group(self, actor: Actor, group: str) -> None:
        """Take back the dismissal of a group, so that its texts are proposed again.

        Args:
            actor: The reviewer.
            group: The id in ``list_dismissed``.

        Raises:
            Conflict: The group isn't dismissed.

        """
        with self._store.transaction():
            if group not in _in_force(self._store.team.history(GroupDismissal)):
                raise Conflict("the dismissal of this group has already been undone.")
            record = GroupDismissal(group=group, taken_back=True)
            self._store.team.put_in_force(name_of(actor), record)

    @requires("read")
    def list_dismissed(self, actor: Actor) -> tuple[DismissedGroup, ...]:
        """Return the dismissed groups with faults that this person may see, newest first."""
        in_force = _in_force(self._store.team.history(GroupDismissal))
        if not in_force:
            return ()
        dismissed = {digest for *_, row in in_force.values() for digest in row.patterns}
        numbers = self._store.modes.patterns_with(dismissed)
        if not numbers:
            return ()
        patterns = tuple(numbers.values())
        wanted = _GROUPED.model_copy(update={"patterns": patterns})
        visible = self._store.modes.count_by_pattern(self._seen_by(actor, wanted))
        listed: list[DismissedGroup] = []
        for group, (at, by, dismissal) in reversed(in_force.items()):
            # The other patterns may be the words of a colleague that this person may not see yet.
            known = (numbers[digest] for digest in dismissal.patterns if digest in numbers)
            own = [seq for seq in known if seq in visible]
            if own:
                text = self._store.modes.pattern_texts(own[:1])[own[0]]
                listed.append(DismissedGroup(group, at, by, text, sum(visible[seq] for seq in own)))
        return tuple(listed)

    @requires("audit", "let a model name groups of notes")
    def suggest_name(self, actor: Actor, group: ProposedGroup) -> SuggestedName:
        """Ask the model that is set as critic for a name of a group. A person decides whether to
        use it.

        It is sent ``TEXTS_SENT`` texts of the group, which the provider then has.

        Raises:
            InputError: The critic is offline, or the group has no texts any more.
            SettingsError: The model can't be asked.
            ProviderFailed: The provider failed.
            BadReply: The reply has no name.

        """
        asker = self._askers(self._settings)
        typical = ObservationFilter(patterns=group.patterns[:TEXTS_SENT], size=1000)
        by_text = {row.text: None for row in self.search(actor, typical).rows}
        if not by_text:
            raise _outdated_group()
        return suggest_name(asker, list(by_text))

    @requires("read")
    def naming_model(self, actor: Actor) -> str | None:
        """Return the model that ``suggest_name`` would ask, or None if none is set as critic."""
        model = registry.resolve(self._settings.critic, "critic", self._settings)
        return None if model == OFFLINE else model

    @requires("read")
    def preview(
        self,
        actor: Actor,
        codes: Sequence[str],
        wanted: ObservationFilter,
        *,
        without: Collection[str] = (),
    ) -> CodingPreview:
        """Return what applying codes to all matching observations would change.

        Args:
            actor: The reviewer.
            codes: Codes of the codebook.
            wanted: The observations.
            without: The ids of observations that don't count.

        Raises:
            InputError: A code isn't in the codebook, or there are none or too many.

        """
        self._store.modes.catch_up()
        own = known_codes(self._store, codes)
        wanted = self._seen_by(actor, wanted)
        done = set.intersection(
            *(
                set(
                    self._store.modes.ids(
                        wanted.model_copy(update={"codes": (code,)}), 10 * MOST_APPLIED
                    )
                )
                for code in own
            )
        )
        matching = [
            found
            for found in self._store.modes.ids(wanted, 10 * MOST_APPLIED)
            if found not in without
        ]
        new = [found for found in matching if found not in done]
        ids = tuple(new[:MOST_APPLIED])
        listed = self._find_observations(actor, ids)
        return CodingPreview(
            codes=own,
            ids=ids,
            cases=len({found.case_id for found in listed}),
            left_out=len(matching) - len(new),
            beyond=len(new) - len(ids),
            sample=tuple(listed[:PREVIEWED]),
        )

    @requires("read")
    def similar(self, actor: Actor, observation: str) -> ObservationFilter:
        """Return the filter of all observations similar to one, which it includes.

        Similar ones have the same text apart from numbers and quotations, or share words with it
        and mean nearly the same.

        Raises:
            UnknownRecord: There is no such observation, or this person may not see it.

        """
        [target] = self._find_observations(actor, [observation])
        own = self._store.modes.pattern_of(target.id)
        assert own is not None  # it was found above
        visible = ObservationFilter(viewer=actor.name, faults_only=target.is_fault)
        words = self._store.modes.pattern_texts([own])[own]
        nearby = self._store.modes.similar_patterns(visible, words, SIMILAR_PATTERNS)
        texts = self._store.modes.pattern_texts([own, *nearby])
        candidates = [PatternText(seq, text, 0) for seq, text in texts.items() if seq != own]
        alike = [own]
        if candidates:
            vectors = self._encode([PatternText(own, words, 0), *candidates])
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
            close = vectors[1:] @ vectors[0] >= SIMILAR
            alike += [
                candidate.seq
                for candidate, is_close in zip(candidates, close, strict=True)
                if is_close
            ]
        return ObservationFilter(patterns=tuple(alike), faults_only=target.is_fault)

    @requires("read")
    def rank_similar(
        self, actor: Actor, observation: str, codes: Sequence[str], *, without: Collection[str] = ()
    ) -> tuple[SimilarText, ...]:
        """Return the texts nearest to an observation that lack one of these codes, nearest first.

        Compared are the texts that share words with it and the most frequent other ones, by their
        meaning and the kinds of faults that they may name, as for groups. A person decides which of
        them have the same fault: a list in order can't miss all of them as a threshold does.

        Args:
            actor: The reviewer.
            observation: The id of the observation.
            codes: Codes of the codebook. Rows that have them all are left out.
            without: The ids of further observations that are left out.

        Raises:
            InputError: A code isn't in the codebook, or there are none or too many.
            UnknownRecord: There is no such observation, or this person may not see it.

        """
        self._store.modes.catch_up()
        wanted_codes = known_codes(self._store, codes)
        [target] = self._find_observations(actor, [observation])
        own = self._store.modes.pattern_of(target.id)
        assert own is not None  # it was found above
        visible = ObservationFilter(
            viewer=actor.name,
            faults_only=target.is_fault,
            skip_explained=target.is_fault and target.kind != "reason",
        )
        words = self._store.modes.pattern_texts([own])[own]
        counts = self._store.modes.count_by_pattern(visible)
        frequent = sorted(counts, key=lambda seq: (-counts[seq], seq))[:FREQUENT_PATTERNS]
        nearby = self._store.modes.similar_patterns(visible, words, SIMILAR_PATTERNS)
        texts = self._store.modes.pattern_texts([*nearby, *frequent])
        others = [PatternText(seq, text, 0) for seq, text in texts.items() if seq != own]
        vectors = meaning_of(self._encode([PatternText(own, words, 0), *others]))
        closest = np.argsort(-(vectors[1:] @ vectors[0]), kind="stable")
        ranked: list[SimilarText] = []
        for seq in (own, *(others[place].seq for place in closest)):
            rows = self._rows_without(visible, seq, wanted_codes, {observation, *without})
            if rows:
                [newest] = self._find_observations(actor, rows[:1])
                ranked.append(SimilarText(newest, rows))
            if len(ranked) == RANKED:
                break
        return tuple(ranked)

    def _rows_without(
        self, visible: ObservationFilter, pattern: int, codes: Sequence[str], without: set[str]
    ) -> tuple[str, ...]:
        """Return the newest observations with a pattern that lack one of these codes."""
        wanted = visible.model_copy(update={"patterns": (pattern,)})
        rows = self._store.modes.ids(wanted, MOST_APPLIED)
        book = self._store.team.in_force(Codebook)
        coded = (
            wanted.model_copy(update={"codes": (code, *book.codes_of(code))}) for code in codes
        )
        done = set.intersection(*(set(self._store.modes.ids(one, MOST_APPLIED)) for one in coded))
        return tuple(row for row in rows if row not in done and row not in without)

    @requires("read")
    def count_modes(self, actor: Actor, facet: Facet = "mode") -> tuple[ModeCount, ...]:
        """Count the cases of each mode by the values of a facet, most frequent mode first.

        The base is the number of cases with this value that were audited, decided or coded. For the
        facet ``cause`` it is the number of cases with the mode.
        """
        book = self._store.team.in_force(Codebook)
        codes = {mode.code: book.codes_of(mode.code) for mode in book.in_use}
        tallies = self._store.modes.tally(codes, facet, actor.name)
        examined = self._store.modes.count_examined(facet, actor.name)
        totals = {
            tally.mode: tally.cases for tally in self._store.modes.tally(codes, "mode", actor.name)
        }
        counts: list[ModeCount] = []
        for tally in tallies:
            of_mode = FACETS[facet].of_mode
            base = totals[tally.mode] if of_mode else examined.get(tally.value, tally.cases)
            low, high = wilson_bounds(tally.cases, base)
            counts.append(
                ModeCount(
                    mode=tally.mode,
                    value=tally.value,
                    cases=tally.cases,
                    base=base,
                    low=low,
                    high=high,
                    observations=tally.observations,
                    case_filter=_cases_of(codes[tally.mode], facet, tally.value),
                )
            )
        return tuple(
            # The values of each mode are in the same order, so that modes can be compared.
            sorted(
                counts,
                key=lambda row: (
                    -totals[row.mode],
                    row.mode,
                    -(row.cases if FACETS[facet].of_mode else row.base),
                    row.value,
                ),
            )
        )

    @requires("read")
    def tabulate_modes(self, actor: Actor, facet: Facet) -> ModeTable:
        """Count the cases of each mode of the codebook with each value of a facet of cases."""
        book = self._store.team.in_force(Codebook)
        codes = {mode.code: book.codes_of(mode.code) for mode in book.in_use}
        # No mode has an empty code.
        codes[""] = tuple(mode.code for mode in book.modes)
        counts = {
            (tally.mode, tally.value): tally.cases
            for tally in self._store.modes.tally(codes, facet, actor.name)
        }
        examined = self._store.modes.count_examined(facet, actor.name)
        values = tuple(sorted(examined, key=lambda value: (-examined[value], value)))
        cases = {code: tuple(counts.get((code, value), 0) for value in values) for code in codes}
        any_mode = cases.pop("")
        return ModeTable(values, tuple(examined[value] for value in values), cases, any_mode)

    @requires("read")
    def agreement(self, actor: Actor) -> tuple[ModeAgreement, ...]:
        """Return how far reviewers agree about each mode, on cases that several of them decided.

        Only people who applied a code to some case count as reviewers here, since the others may
        not code at all.
        """
        book = self._store.team.in_force(Codebook)
        codings = self._store.modes.find_shared_codings(actor.name)
        return tuple(
            row
            for mode in book.in_use
            if (row := _agreement(mode.code, frozenset(book.codes_of(mode.code)), codings)).both
            or row.one
        )

    # Coding

    @requires("decide", APPLY_CODES)
    def code(
        self, actor: Actor, case_id: str, codes: Sequence[str], observation: str | None = None
    ) -> LogEntry:
        """Apply codes to a case, or to one observation in it.

        Args:
            actor: The reviewer.
            case_id: The case.
            codes: Codes of the codebook.
            observation: The id of an observation of this case; the case itself if None.

        Raises:
            InputError: A code isn't in the codebook, or there are none or too many.
            UnknownRecord: There is no such case or observation, or the actor may not see it.

        """
        own = known_codes(self._store, codes)
        place = self._place(actor, case_id, observation)
        return self._store.decisions.append(code_entry(self._store, actor, case_id, own, place))

    @requires("decide", APPLY_CODES)
    @may_require("oversee", "remove failure modes that others applied")
    def uncode(
        self,
        actor: Actor,
        case_id: str,
        codes: Sequence[str],
        observation: str | None = None,
        *,
        coded_by: str | None = None,
    ) -> LogEntry:
        """Remove codes from a case, or from one observation in it.

        Args:
            actor: The reviewer.
            case_id: The case.
            codes: The codes, as they were applied.
            observation: The id of an observation of this case; the case itself if None.
            coded_by: The person who applied them; by default the actor.

        Raises:
            NotAllowed: The codes are another person's, and the actor isn't a lead.
            UnknownRecord: There is no such case, observation or code, or the actor may not see it.

        """
        of = coded_by or name_of(actor)
        if of != actor.name:
            self.access.require(actor, "oversee", "remove failure modes that others applied")
        return self._uncode(actor, case_id, codes, self._place(actor, case_id, observation), of)

    @requires("decide", APPLY_CODES)
    @may_require("oversee", "remove failure modes that others applied")
    def remove_code(self, actor: Actor, applied: AppliedCode) -> LogEntry:
        """Remove a code that ``list_codes`` returned, from the case or the place in it.

        Raises:
            NotAllowed: Another person applied it, and the actor isn't a lead.
            UnknownRecord: It isn't there any more, or the actor may not see it.

        """
        if applied.reviewer != name_of(actor):
            self.access.require(actor, "oversee", "remove failure modes that others applied")
        return self._uncode(
            actor, applied.case_id, [applied.code], applied.place or None, applied.reviewer
        )

    @requires("decide", APPLY_CODES)
    def apply(
        self,
        actor: Actor,
        codes: Sequence[str],
        observations: Sequence[str],
        *,
        token: str = "",
        on_progress: Callable[[int], None] | None = None,
    ) -> CodedBatch:
        """Apply codes to many observations, each by an entry of its own, as a batch.

        It's a batch of the action ``code`` like any other, so ``BatchService`` shows, continues and
        undoes it.

        Args:
            actor: The reviewer.
            codes: Codes of the codebook.
            observations: The ids of the observations, as ``preview`` returns them.
            token: Makes a repeated call harmless.
            on_progress: Called with the number of cases done.

        Raises:
            InputError: A code isn't in the codebook, there are too many observations, or the token
                was used for something else.
            UnknownRecord: An observation doesn't exist, or the actor may not see it.
            StoreError: All of them have the codes already.

        """
        ids = tuple(dict.fromkeys(observations))
        if not ids:
            return CodedBatch(batch="", entries=0, cases=0)
        if len(ids) > MOST_APPLIED:
            raise InputError(
                f"too many observations ({len(ids):,})",
                hint=f"Apply codes to at most {MOST_APPLIED:,} at a time.",
            )
        cases = tuple(dict.fromkeys(row.case_id for row in self._find_observations(actor, ids)))
        request = BatchRequest(
            action="code", cases=cases, names=known_codes(self._store, codes), observations=ids
        )
        return self._run_batch(actor, request, token, on_progress)

    @requires("decide", APPLY_CODES)
    def apply_to_cases(
        self, actor: Actor, codes: Sequence[str], case_ids: Sequence[str], *, token: str = ""
    ) -> CodedBatch:
        """Apply codes to many cases as a batch, each by an entry of its own. See ``apply``.

        Raises:
            InputError: A code isn't in the codebook, or there are too many cases.
            UnknownRecord: There is no such case.
            StoreError: All of them have the codes already.

        """
        unique = tuple(dict.fromkeys(case_ids))
        if len(unique) > MOST_APPLIED:
            raise InputError(
                f"too many cases ({len(unique):,})",
                hint=f"Apply codes to at most {MOST_APPLIED:,} at a time.",
            )
        request = BatchRequest(action="code", cases=unique, names=known_codes(self._store, codes))
        return self._run_batch(actor, request, token)

    # The codebook

    @requires("decide", ADD_MODES)
    def add_mode(self, actor: Actor, mode: FailureMode) -> Codebook:
        """Add a mode to the codebook, as a reviewer does who sees a failure without a code.

        ``code_from_name`` makes its code.

        Raises:
            InputError: The codebook has its code or name already, or its parent doesn't exist.

        """
        book = self._store.team.in_force(Codebook)
        return self._put(actor, book, [*book.modes, mode])

    @requires("decide", ADD_MODES)
    def confirm_group(
        self,
        actor: Actor,
        group: ProposedGroup,
        mode: FailureMode,
        *,
        only: Collection[str] | None = None,
        without: Collection[str] = (),
        on_progress: Callable[[int], None] | None = None,
    ) -> CodedBatch:
        """Make a mode of a proposed group, and apply its code to the group's members.

        If the codebook has the mode's code already, its members join that mode. Of a group with
        more than ``MOST_APPLIED`` members the rest stays uncoded and can be confirmed again.

        Args:
            actor: The reviewer.
            group: The group.
            mode: The mode.
            only: The ids of the members that get the code; all if None.
            without: The ids of members that stay without it.
            on_progress: Called with the number of cases done.

        Raises:
            InputError: The codebook has another mode with this name.

        """
        if self._store.team.in_force(Codebook).find(mode.code) is None:
            self.add_mode(actor, mode)
        preview = self.preview(actor, [mode.code], group.members, without=without)
        ids = preview.ids if only is None else [row for row in preview.ids if row in only]
        return self.apply(actor, [mode.code], ids, on_progress=on_progress)

    @requires("oversee", CHANGE_CODEBOOK)
    def change_mode(self, actor: Actor, mode: FailureMode) -> Codebook:
        """Replace the mode with this code: its name, definition, examples and parent.

        Raises:
            InputError: There is no mode with this code, another one has its name, or the parent
                doesn't exist or is nested under the mode.

        """
        book = self._store.team.in_force(Codebook)
        mode_named(book, mode.code)
        return self._put(
            actor, book, [mode if known.code == mode.code else known for known in book.modes]
        )

    @requires("oversee", CHANGE_CODEBOOK)
    def nest(self, actor: Actor, codes: Sequence[str], parent: str | None) -> Codebook:
        """Nest modes under another one, or move them to the top with None.

        Raises:
            InputError: There is no such mode, or the parent is nested under one of them.

        """
        book = self._store.team.in_force(Codebook)
        for code in (*codes, *([parent] if parent is not None else [])):
            mode_named(book, code)
        moved = [
            mode.model_copy(update={"parent": parent}) if mode.code in codes else mode
            for mode in book.modes
        ]
        return self._put(actor, book, moved)

    @requires("oversee", CHANGE_CODEBOOK)
    def merge(self, actor: Actor, codes: Sequence[str], into: str) -> Codebook:
        """Merge modes into another one. Entries with their codes count for it from now on.

        Modes nested under a merged one are nested under the other mode.

        Raises:
            InputError: There is no such mode, or a mode is merged into itself.

        """
        book = self._store.team.in_force(Codebook)
        names = {code: mode_named(book, code).name for code in (*codes, into)}
        if into in codes:
            raise InputError(
                f"“{names[into]}” can't be merged into itself", hint="Leave it out.", field="codes"
            )
        merged: list[FailureMode] = []
        for mode in book.modes:
            update: dict[str, str | None] = {}
            if mode.code in codes:
                update = {"merged_into": into, "parent": None}
            elif mode.parent in codes:
                update = {"parent": None if mode.code == into else into}
            merged.append(mode.model_copy(update=update))
        return self._put(actor, book, merged)

    @requires("oversee", CHANGE_CODEBOOK)
    def unmerge(self, actor: Actor, code: str) -> Codebook:
        """Take back the merge of a mode, which gets its own entries back.

        Raises:
            InputError: There is no mode with this code, or it wasn't merged.

        """
        book = self._store.team.in_force(Codebook)
        mode = next((mode for mode in book.modes if mode.code == code), None)
        if mode is None or mode.merged_into is None:
            name = mode.name if mode else code
            raise InputError(f"“{name}” wasn't merged", hint="See the history.", field="code")
        own = mode.model_copy(update={"merged_into": None})
        return self._put(
            actor, book, [own if known.code == code else known for known in book.modes]
        )

    @requires("oversee", CHANGE_CODEBOOK)
    def split(
        self, actor: Actor, code: str, mode: FailureMode, observations: Sequence[str]
    ) -> CodedBatch:
        """Move the given observations of a mode to a new mode. See ``move_rows``.

        Raises:
            InputError: There is no mode with this code, or the new one's code or name is taken.
            UnknownRecord: An observation doesn't exist, or the actor may not see it.

        """
        mode_named(self._store.team.in_force(Codebook), code)
        self._find_observations(actor, observations)
        self.add_mode(actor, mode)
        return self.move_rows(actor, code, mode.code, observations)

    @requires("decide", APPLY_CODES)
    def move_rows(
        self, actor: Actor, code: str, into: str, observations: Sequence[str]
    ) -> CodedBatch:
        """Move the given observations from a mode to another one.

        The actor's own codes are replaced. Those of others stay, so the observation then has both.

        Raises:
            InputError: There is no mode with one of these codes, or both are the same mode.
            UnknownRecord: An observation doesn't exist, or the actor may not see it.
            StoreError: All of them have the other mode already.

        """
        book = self._store.team.in_force(Codebook)
        target = mode_named(book, into)
        if target.code == mode_named(book, code).code:
            raise InputError(
                f"the rows have “{target.name}” already", hint="Choose another mode.", field="into"
            )
        batch = self.apply(actor, [target.code], observations)
        self.remove_from_rows(actor, code, observations)
        return batch

    @requires("decide", APPLY_CODES)
    def remove_from_rows(self, actor: Actor, code: str, observations: Sequence[str]) -> int:
        """Remove the actor's own codes of a mode from observations, and return from how many.

        Raises:
            InputError: There is no mode with this code.
            UnknownRecord: An observation doesn't exist, or the actor may not see it.

        """
        book = self._store.team.in_force(Codebook)
        codes = set(book.codes_of(mode_named(book, code).code, nested=False))
        removed = 0
        for row in self._find_observations(actor, observations):
            own = [
                applied.code
                for applied in self.list_codes(actor, row.case_id)
                if (applied.place, applied.reviewer) == (row.place, actor.name)
                and applied.code in codes
            ]
            if own:
                self.uncode(actor, row.case_id, own, row.id)
                removed += 1
        return removed

    @requires("oversee", CHANGE_CODEBOOK)
    def import_codebook(self, actor: Actor, text: str, *, replace: bool = False) -> Codebook:
        """Add the modes of an exported codebook to the codebook, or replace it.

        Modes whose code the codebook has already are replaced. With ``replace``, modes that aren't
        in the text are removed, unless their code was applied.

        Args:
            actor: The lead.
            text: A codebook as JSON, as ``export_codebook`` returns it.
            replace: Whether to remove the other modes.

        Raises:
            InputError: The text isn't a codebook, or its modes don't fit those that stay.

        """
        try:
            given = Codebook.model_validate_json(text)
        except ValidationError as error:
            raise explain(error) from error
        return self._add_codebook(actor, given, replace=replace)

    @requires("oversee", CHANGE_CODEBOOK)
    def start_codebook(self, actor: Actor, name: str) -> Codebook:
        """Add the modes of a starting codebook, such as ``mast`` or ``rag``.

        Raises:
            InputError: There is no such codebook, or its names clash with other modes.

        """
        starting = starting_codebooks()
        if name not in starting:
            raise InputError(
                f"there is no starting codebook {name!r}",
                hint=f"Choose one of {', '.join(starting)}.",
                field="name",
            )
        return self._add_codebook(actor, starting[name].codebook, replace=False)

    @requires("read")
    def export_codebook(self, actor: Actor) -> str:
        """Return the codebook as JSON, which ``import_codebook`` reads."""
        return self._store.team.in_force(Codebook).model_dump_json(indent=2)

    # Parts

    def _seen_by(self, actor: Actor, wanted: ObservationFilter) -> ObservationFilter:
        codes = wanted.codes
        if codes:
            book = self._store.team.in_force(Codebook)
            codes = tuple({every for code in codes for every in (code, *book.codes_of(code))})
        return wanted.model_copy(update={"viewer": actor.name, "codes": codes})

    def _find_observations(self, actor: Actor, ids: Sequence[str]) -> list[CaseObservation]:
        """Return observations by their ids, in this order.

        Raises:
            UnknownRecord: One doesn't exist, or the actor may not see it.

        """
        found: dict[str, CaseObservation] = {}
        for start in range(0, len(ids), 1000):
            wanted = ObservationFilter(
                ids=tuple(ids[start : start + 1000]), viewer=actor.name, size=1000
            )
            found |= {row.id: row for row in self._store.modes.search(wanted).rows}
        for missing in ids:
            if missing not in found:
                raise UnknownRecord(f"there is no observation {missing!r} that you can see.")
        return [found[observation_id] for observation_id in ids]

    def _uncode(
        self, actor: Actor, case_id: str, codes: Sequence[str], place: str | None, of: str
    ) -> LogEntry:
        """Remove codes from a place in a case. Raises UnknownRecord if one isn't there."""
        seen = {
            (applied.place, applied.code, applied.reviewer)
            for applied in self.list_codes(actor, case_id)
        }
        for code in codes:
            if (place or "", code, of) not in seen:
                [name] = self._store.team.in_force(Codebook).names_of([code])
                raise UnknownRecord(f"{of} didn't apply “{name}” there.")
        return self._store.decisions.append(uncode_entry(actor, case_id, codes, place, of))

    def _place(self, actor: Actor, case_id: str, observation: str | None) -> str | None:
        if observation is None:
            return None
        [found] = self._find_observations(actor, [observation])
        if found.case_id != case_id:
            raise UnknownRecord(f"case {case_id!r} has no observation {observation!r}.")
        return found.place

    def _run_batch(
        self,
        actor: Actor,
        request: BatchRequest,
        token: str,
        on_progress: Callable[[int], None] | None = None,
    ) -> CodedBatch:
        batch = self._batches.start(actor, request, token=token)
        while batch.is_running:
            with self._store.transaction():
                batch = self._batches.advance(actor, batch.id, _AT_ONCE)
            if on_progress is not None:
                on_progress(batch.total - batch.waiting)
        entries = self._store.modes.count_of_batch(batch.id)
        return CodedBatch(batch=batch.id, entries=entries, cases=batch.recorded)

    def _put(self, actor: Actor, book: Codebook, modes: Iterable[FailureMode]) -> Codebook:
        """Put a changed codebook in force. Raises InputError if its modes don't fit together."""
        try:
            changed = Codebook(version=book.version, modes=tuple(modes), sources=book.sources)
        except ValidationError as error:
            raise explain(error) from error
        if changed == book:
            return book
        return self._store.team.put_in_force(name_of(actor), changed)

    def _add_codebook(self, actor: Actor, given: Codebook, *, replace: bool) -> Codebook:
        book = self._store.team.in_force(Codebook)
        new = {mode.code: mode for mode in given.modes}
        kept = [new.pop(mode.code, mode) for mode in book.modes]
        if replace:
            used = self._store.modes.codes_used()
            kept = [
                mode
                for mode in kept
                if mode.code in {known.code for known in given.modes} or mode.code in used
            ]
        sources = tuple(dict.fromkeys((*book.sources, *given.sources)))
        with_sources = book.model_copy(update={"sources": sources})
        return self._put(actor, with_sources, [*kept, *new.values()])

    def _dismissed_patterns(self, history: Iterable[tuple[str, str, GroupDismissal]]) -> set[int]:
        """Return the numbers of the patterns of groups whose dismissal is in force."""
        dismissed = {digest for *_, row in _in_force(history).values() for digest in row.patterns}
        return set(self._store.modes.patterns_with(dismissed).values()) if dismissed else set()

    def _propose(self, members: Ints) -> GroupProposal:
        """Return new groups of the observations that ``FailureModes.members`` returned."""
        numbers, counts = np.unique(members >> _CASE_BITS, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        texts = self._store.modes.pattern_texts(numbers.tolist())
        patterns = [
            PatternText(int(numbers[place]), texts[int(numbers[place])], int(counts[place]))
            for place in order
            if int(numbers[place]) in texts
        ]
        groups = tuple(
            ProposedGroup(
                id=hashlib.sha256(json.dumps(group.patterns).encode()).hexdigest()[:16],
                title=group.title,
                name=group.name,
                observations=group.observations,
                cases=0,
                patterns=group.patterns,
            )
            for group in group_patterns(patterns, self._encode)
        )
        proposed = GroupProposal(groups=groups, observations=0, cases=0, ungrouped=0, new=0)
        counted = _recount(proposed, members)
        return counted.model_copy(update={"new": 0})

    def _encode(self, patterns: Sequence[PatternText]) -> Floats:
        """Return the vectors of patterns, from the database where they are stored."""
        stored = self._store.modes.vectors([pattern.seq for pattern in patterns])
        encoder, new = load_encoder(), dict[int, bytes]()
        own = hashlib.sha256(f"{encoder.digest} {VERSION}".encode()).digest()
        vectors: list[Floats] = []
        for pattern in patterns:
            packed = stored.get(pattern.seq, b"")
            # A vector of another version of the encoder can't be compared with the new ones.
            if not packed.startswith(own):
                vector = encoder.encode(text_to_encode(pattern.text))
                packed = own + np.asarray(vector, np.float32).tobytes()
                new[pattern.seq] = packed
            vectors.append(np.frombuffer(packed, dtype=np.float32, offset=len(own)))
        if new:
            self._store.modes.save_vectors(new)
        return np.stack(vectors)


def _in_force(
    history: Iterable[tuple[str, str, GroupDismissal]],
) -> dict[str, tuple[str, str, GroupDismissal]]:
    """Return the dismissals that weren't taken back, by group, in the order of their times."""
    in_force: dict[str, tuple[str, str, GroupDismissal]] = {}
    for at, by, dismissal in history:
        in_force.pop(dismissal.group, None)
        if not dismissal.taken_back:
            in_force[dismissal.group] = (at, by, dismissal)
    return in_force


def _outdated_group() -> InputError:
    return InputError(
        "the group no longer has any text", hint="Propose the groups again.", field="group"
    )


def _distinct(values: Ints) -> Ints:
    """Return the distinct values, sorted.

    ``np.unique`` hashes them since numpy 2.3, which takes ten times as long for these numbers.
    """
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def _recount(proposal: GroupProposal, members: Ints) -> GroupProposal:
    """Return a proposal with the counts of these observations; groups without any are left out."""
    patterns = np.array([seq for group in proposal.groups for seq in group.patterns], np.int64)
    of_pattern = np.repeat(
        np.arange(len(proposal.groups)), [len(group.patterns) for group in proposal.groups]
    )
    order = np.argsort(patterns)
    patterns, of_pattern = patterns[order], of_pattern[order]
    wanted = members >> _CASE_BITS
    cases = members & (1 << _CASE_BITS) - 1
    place = np.searchsorted(patterns, wanted)
    place[place == len(patterns)] = 0
    is_grouped = patterns[place] == wanted if len(patterns) else np.zeros(len(wanted), dtype=bool)
    group = of_pattern[place[is_grouped]] if len(patterns) else np.zeros(0, dtype=np.int64)
    counts = np.bincount(group, minlength=len(proposal.groups))
    in_cases = _distinct(group << _CASE_BITS | cases[is_grouped]) >> _CASE_BITS
    case_counts = np.bincount(in_cases, minlength=len(proposal.groups))
    groups = tuple(
        group.model_copy(
            update={"observations": int(counts[number]), "cases": int(case_counts[number])}
        )
        for number, group in enumerate(proposal.groups)
        if counts[number]
    )
    ungrouped = int(len(members) - is_grouped.sum())
    return GroupProposal(
        groups=tuple(sorted(groups, key=lambda group: -group.observations)),
        observations=len(members),
        cases=len(_distinct(cases)),
        ungrouped=ungrouped,
        new=max(0, ungrouped - (proposal.ungrouped - proposal.new)),
    )


def _cases_of(codes: tuple[str, ...], facet: Facet, value: str) -> CaseFilter:
    """Return the filter of the cases with one of these codes and one value of a facet."""
    chosen = CaseFilter(modes=codes)
    field = FACETS[facet].case_filter
    return chosen.model_copy(update={field: (value,)}) if field else chosen


def _agreement(
    mode: str, codes: frozenset[str], codings: Mapping[int, Mapping[str, frozenset[str]]]
) -> ModeAgreement:
    first: list[int] = []
    second: list[int] = []
    cases: list[int] = []
    for case, reviewers in codings.items():
        applied = [int(bool(codes & of_reviewer)) for _, of_reviewer in sorted(reviewers.items())]
        for one, other in combinations(applied, 2):
            first.append(one)
            second.append(other)
            cases.append(case)
    ratings = np.array([first, second], dtype=np.int64).T.reshape(-1, 2)
    counts = UnitCounts.of(ratings, ratings[:, 0] * 2 + ratings[:, 1], np.array(cases), 4)
    both = int((ratings.sum(axis=1) == 2).sum())
    one = int((ratings.sum(axis=1) == 1).sum())
    return ModeAgreement(
        mode,
        both,
        one,
        len(cases),
        share(ratings[:, 0] == ratings[:, 1], np.array(cases)),
        counts.estimate(lambda tables: cohen_kappa(tables.reshape(*tables.shape[:-1], 2, 2))),
    )
