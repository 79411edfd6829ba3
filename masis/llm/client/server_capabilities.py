"""What is known of a model at an address, for as long as the process lives: how it takes to be
asked.

A server that refuses strict schemas is asked in JSON mode from then on, and one that refuses that
gets the schema in the prompt; a parameter it refuses is left out. Some servers accept a schema and
ignore it: what comes back in a mode that has never worked there counts against the mode, and twice
is enough.
"""

from __future__ import annotations

import re
import threading
from collections import Counter

from masis.llm.providers.base import Call, TokenUsage, TryFailed
from masis.schema.calls import ReplyMode

MOST_ROOM = 16
"""How many times the tokens of a reply a model that thinks first may use up for both."""
DOUBTS = 2
"""Unreadable replies after which a mode that never gave a readable one is left for a plainer one
that did.
"""
WORDS_A_TOKEN, WORDS_A_TOKEN_USUAL = 1.25, 0.85
"""Words a token from which a prompt was cut, and those that show that the server's tokens never
span two words.

Tokenizers in common use split a text at its blanks before they merge, so that a word takes at least
one token; English has 0.75 words a token, other languages fewer. A few tokenizers have tokens of
several words: until a server has shown that its own isn't one of those, as many words more are
allowed.
"""
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff"
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]{8,}"
)
"""Thai, Lao, Tibetan, Burmese, Khmer, kana and Han: scripts that put no blanks between words."""
CHARACTERS_A_TOKEN_MOST = 4
"""Of those scripts: tokenizers take 1 to 3 characters a token there."""
SMALLEST_CONTEXT = 256
"""Tokens that every model reads: what is shorter isn't cut, whatever a server says that
it counted.
"""
MODES_IN_WORDS: dict[ReplyMode, str] = {
    "json_schema": "a strict schema",
    "json_object_schema": "JSON mode with the schema beside it",
    "json_object": "JSON mode (of Anthropic's models: a tool to call)",
    "prompt": "the schema in the prompt alone",
    "text": "plain text",
}


def least_tokens(text: str) -> int:
    """Return how many tokens a text takes at least, whatever its language and the tokenizer.

    One for each word between blanks, and more for a long run of a script that has none. Long words,
    blanks in a row and repeated signs add nothing: tokenizers differ in how far they merge those.
    """
    unspaced = sum(len(run) // CHARACTERS_A_TOKEN_MOST - 1 for run in _UNSPACED.findall(text))
    return len(text.split()) + unspaced


class ServerCapabilities:
    """One model at one address. Safe to use from several threads; ``fixed`` is a mode that a person
    chose.
    """

    def __init__(self, modes: tuple[ReplyMode, ...], fixed: ReplyMode | None = None) -> None:
        self._lock = threading.Lock()
        self._modes = (fixed,) if fixed in modes else modes
        self.mode = self._modes[0]
        """How to ask for a typed reply."""
        self.without: frozenset[str] = frozenset()
        """Parameters to leave out."""
        self.room = 1
        """By how much the limit of tokens is multiplied: a model that thinks first takes its
        thoughts from it.
        """
        self._proven: set[ReplyMode] = set()
        self._doubts: Counter[ReplyMode] = Counter()
        self._words_a_token = WORDS_A_TOKEN
        self._most_counted = 0

    def cut_the_prompt(self, sent: str, tokens: TokenUsage) -> bool:
        """Return whether the server read only a part of what was sent, by the tokens that it
        counted.

        False where it counts nothing. What it read from its cache is counted too: APIs differ in
        whether the tokens of the prompt include that. A server that says nothing of its cache and
        counts only what it read anew is recognised by having counted at least twice as much before:
        its context holds more than this prompt.
        """
        counted = tokens.prompt + tokens.cached + tokens.written
        if tokens.prompt <= 0:
            return False
        words = least_tokens(sent)
        if words < SMALLEST_CONTEXT:
            return False
        words_a_token = words / counted
        with self._lock:
            if words_a_token > self._words_a_token and 2 * counted >= self._most_counted:
                return True
            if words_a_token <= WORDS_A_TOKEN_USUAL:
                self._words_a_token = 1.0
            self._most_counted = max(self._most_counted, counted)
            return False

    def learn(self, failed: TryFailed, call: Call) -> str | None:
        """Respect a refusal of how ``call`` asked; what is done from now on, in words, or None if
        nothing can be.

        Empty where another call has learned the same meanwhile.
        """
        with self._lock:
            if (
                failed.trouble == "parameter"
                and failed.parameter
                and failed.parameter not in call.without
            ):
                if failed.parameter in self.without:
                    return ""
                self.without |= {failed.parameter}
                return f"{failed.parameter!r} is not sent any more"
            if failed.trouble == "cut_off" and failed.tokens.thought and call.room < MOST_ROOM:
                if self.room > call.room:
                    return ""
                self.room = call.room * 4
                return (
                    f"it thinks before it replies: the limit of tokens is {self.room} times as high"
                )
            plainer = (
                self._plainer(call.mode)
                if failed.trouble == "format" and call.mode in self._modes
                else None
            )
            return None if plainer is None else self._step_down(call.mode, plainer)

    def plainer_if_unproven(self, mode: ReplyMode) -> ReplyMode:
        """The mode to ask in after an unreadable reply: the same if it has worked here, else the
        next plainer one.
        """
        with self._lock:
            return mode if mode in self._proven else self._plainer(mode) or mode

    def read_badly(self, mode: ReplyMode) -> None:
        """A reply in this mode could not be read."""
        with self._lock:
            self._doubts[mode] += 1

    def read_well(self, mode: ReplyMode) -> str:
        """A reply in this mode was read; what is done from now on, in words, where that changes
        something.
        """
        with self._lock:
            self._proven.add(mode)
            current = self.mode
            plainer = self._modes.index(mode) > self._modes.index(current)
            if plainer and current not in self._proven and self._doubts[current] >= DOUBTS:
                return self._step_down(current, mode)
            return ""

    def _plainer(self, mode: ReplyMode) -> ReplyMode | None:
        at = self._modes.index(mode) + 1
        return self._modes[at] if at < len(self._modes) else None

    def _step_down(self, mode: ReplyMode, to: ReplyMode) -> str:
        if self._modes.index(self.mode) >= self._modes.index(to):
            return ""
        self.mode = to
        return f"replies are asked for by {MODES_IN_WORDS[to]} instead of {MODES_IN_WORDS[mode]}"


_known: dict[tuple[str, str, ReplyMode | None], ServerCapabilities] = {}


def capabilities_of(
    address: str, model: str, modes: tuple[ReplyMode, ...], fixed: ReplyMode | None = None
) -> ServerCapabilities:
    """What is known of a model at an address, the same for all that ask it."""
    # one step, in CPython
    return _known.setdefault((address, model, fixed), ServerCapabilities(modes, fixed))
