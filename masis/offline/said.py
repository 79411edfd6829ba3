"""A sentence as both sides see it, claim and evidence alike: its words at once, what is read off them when first asked.

Reading is what costs; whoever holds a claim against each of many chunks reads it once.
"""

from collections.abc import Collection, Sequence
from functools import cached_property

from masis.offline.clauses import clauses
from masis.offline.facts import Fact, extract
from masis.offline.lexicon import phrases
from masis.offline.modality import Modal, modes
from masis.offline.polarity import limited, negated, negation_cues, universal
from masis.offline.stretches import Stretch, Telling, segments, stretches, tellings
from masis.offline.text import Token


class Said:
    """A sentence, or a stretch of one that runs on; `words` have offsets into `text`.

    `known_names` are words that are names even where a sentence starts.
    """

    def __init__(self, text: str, words: Sequence[Token], known_names: Collection[str] = ()) -> None:
        self.text, self.words, self.known_names = text, words, known_names
        self.content = frozenset(word.stem for word in words if word.weight > 0)

    @cached_property
    def facts(self) -> list[Fact]:
        """Its numbers, dates and names, with offsets into the text."""
        return extract(self.text, self.known_names, self.words)

    @cached_property
    def names(self) -> list[Fact]:
        """Its names alone."""
        return [fact for fact in self.facts if fact.kind == "name"]

    @cached_property
    def lowers(self) -> list[str]:
        """Its words in lower case."""
        return [word.text.lower() for word in self.words]

    @cached_property
    def positions(self) -> dict[str, list[int]]:
        """Where each stem stands, as word indices."""
        found: dict[str, list[int]] = {}
        for i, word in enumerate(self.words):
            found.setdefault(word.stem, []).append(i)
        return found

    @cached_property
    def cues(self) -> list[int]:
        """Word indices of the negations themselves."""
        return negation_cues(self.words)

    @cached_property
    def negated(self) -> dict[int, int]:
        """Word indices in the scope of a negation, each with its cue."""
        return negated(self.text, self.words, self.cues)

    @cached_property
    def universal(self) -> list[int]:
        """Word indices of what leaves no exception."""
        return universal(self.words)

    @cached_property
    def limited(self) -> list[int]:
        """Word indices of what leaves exceptions."""
        return limited(self.words)

    @cached_property
    def clauses(self) -> list[int]:
        """Its clauses, as masks over its content words."""
        return clauses(self.text, self.words)

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """What it says of one subject after the other."""
        return stretches(self.text, self.words)

    @cached_property
    def tellings(self) -> tuple[Telling, ...]:
        """Its stretches with what each tells."""
        return tellings(self.words, self.stretches)

    @cached_property
    def segments(self) -> list[int]:
        """The number of the segment each word stands in."""
        return segments(self.text, self.words)

    @cached_property
    def phrases(self) -> dict[int, str]:
        """Verbs with a particle, as indices of the verb, and the stem of the word they stand for."""
        return phrases(self.words)

    @cached_property
    def modes(self) -> tuple[Modal, ...]:
        """What it grants, forbids, demands or waives."""
        return modes(self.text, self.words, self.stretches)
