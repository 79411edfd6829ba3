"""Remembers which request formats a model at an address supports, for the life of the process.

A server that refuses strict schemas gets requests in JSON mode from then on, and one that refuses
that gets the schema in the prompt; refused parameters are left out. Some servers accept a schema
and ignore it. Two unreadable replies in a format that never worked there are enough to change to a
plainer one that did.
"""

from __future__ import annotations

import re
import threading
from collections import Counter

from masis.llm.providers.base import Call, TokenUsage, TryFailed
from masis.schema.calls import ReplyMode

MAX_ROOM = 16
"""The highest factor by which the token limit grows for a model that thinks before it replies."""
DOUBTS = 2
"""The number of unreadable replies after which a mode that never worked is replaced by a plainer
one that did.
"""
WORDS_PER_TOKEN, USUAL_WORDS_PER_TOKEN = 1.25, 0.85
"""Words per token: above the first the prompt was cut; the second shows that tokens never span two
words.

Common tokenizers split a text at spaces before they merge, so a word has at least one token.
English has 0.75 words per token, other languages fewer. A few tokenizers have tokens of several
words. Until a server's counts show that its tokenizer isn't one of them, the higher limit applies.
"""
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff"
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]{8,}"
)
"""Runs of Thai, Lao, Tibetan, Burmese, Khmer, kana and Han, which don't separate words."""
MAX_CHARACTERS_PER_TOKEN = 4
"""Maximum number of characters of those scripts per token; tokenizers have 1 to 3."""
SMALLEST_CONTEXT = 256
"""Tokens that fit into every model's context, so a shorter prompt is never considered cut."""
MODES_IN_WORDS: dict[ReplyMode, str] = {
    "json_schema": "a strict schema",
    "json_object_schema": "JSON mode with the schema beside it",
    "json_object": "JSON mode (of Anthropic's models: a tool to call)",
    "prompt": "the schema in the prompt alone",
    "text": "plain text",
}


def least_tokens(text: str) -> int:
    """Return the fewest tokens that a text can have, in any language and by any tokenizer.

    Each word between spaces counts as one, and a long run of a script without spaces as more. Long
    words and repeated spaces or symbols add nothing, since tokenizers merge them differently.
    """
    unspaced = sum(len(run) // MAX_CHARACTERS_PER_TOKEN - 1 for run in _UNSPACED.findall(text))
    return len(text.split()) + unspaced


class ServerCapabilities:
    """The known capabilities of one model at one address; thread-safe. ``fixed`` is a mode that a
    person chose.
    """

    def __init__(self, modes: tuple[ReplyMode, ...], fixed: ReplyMode | None = None) -> None:
        self._lock = threading.Lock()
        self._modes = (fixed,) if fixed in modes else modes
        self.mode = self._modes[0]
        """The format in which typed replies are requested."""
        self.without: frozenset[str] = frozenset()
        """The parameters that are left out."""
        self.room = 1
        """The factor on the token limit, which also has to hold the thoughts of a model that thinks
        first.
        """
        self._proven: set[ReplyMode] = set()
        self._doubts: Counter[ReplyMode] = Counter()
        self._words_per_token = WORDS_PER_TOKEN
        self._most_counted = 0

    def cut_the_prompt(self, sent: str, tokens: TokenUsage) -> bool:
        """Return whether the server cut the prompt, judged by the tokens that it counted.

        False if it doesn't count. Tokens from its cache are added, because APIs differ in whether
        the prompt's tokens include them. A server may count only new tokens and not report cached
        ones. If it has counted at least twice as many before, its context is larger than this
        prompt, so the prompt wasn't cut.
        """
        counted = tokens.prompt + tokens.cached + tokens.written
        if tokens.prompt <= 0:
            return False
        words = least_tokens(sent)
        # The chat template adds tokens of its own, which distort the ratio of a short prompt.
        if words < SMALLEST_CONTEXT:
            return False
        words_per_token = words / counted
        with self._lock:
            if words_per_token > self._words_per_token and 2 * counted >= self._most_counted:
                return True
            # This tokenizer has a token for each word at least, so from now on a count of fewer
            # tokens than words proves that the prompt was cut.
            if words_per_token <= USUAL_WORDS_PER_TOKEN:
                self._words_per_token = 1.0
            self._most_counted = max(self._most_counted, counted)
            return False

    def learn(self, failed: TryFailed, call: Call) -> str | None:
        """Change the request format after the server refused ``call``; return the change in words.

        None if there is nothing to change; empty if another call made the same change in the
        meantime.
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
                return f"{failed.parameter!r} is no longer sent"
            # The reply was cut off by thoughts, which count against the same token limit.
            if failed.trouble == "cut_off" and failed.tokens.thought and call.room < MAX_ROOM:
                # Another call has raised the limit since this one was sent, so just try again.
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
        """Return the mode to use after an unreadable reply: the same if it has worked before, else
        the next plainer one.
        """
        with self._lock:
            return mode if mode in self._proven else self._plainer(mode) or mode

    def read_badly(self, mode: ReplyMode) -> None:
        """Record that a reply in this mode was unreadable."""
        with self._lock:
            self._doubts[mode] += 1

    def read_well(self, mode: ReplyMode) -> str:
        """Record that a reply in this mode was read. Return the resulting change in words, or an
        empty string.
        """
        with self._lock:
            self._proven.add(mode)
            current = self.mode
            is_plainer = self._modes.index(mode) > self._modes.index(current)
            if is_plainer and current not in self._proven and self._doubts[current] >= DOUBTS:
                return self._step_down(current, mode)
            return ""

    def _plainer(self, mode: ReplyMode) -> ReplyMode | None:
        next_index = self._modes.index(mode) + 1
        return self._modes[next_index] if next_index < len(self._modes) else None

    def _step_down(self, mode: ReplyMode, plainer: ReplyMode) -> str:
        # Concurrent calls in the old mode fail too; only the first of them changes the mode.
        if self._modes.index(self.mode) >= self._modes.index(plainer):
            return ""
        self.mode = plainer
        return (
            f"replies are asked for by {MODES_IN_WORDS[plainer]} instead of {MODES_IN_WORDS[mode]}"
        )


_known: dict[tuple[str, str, ReplyMode | None], ServerCapabilities] = {}


def capabilities_of(
    address: str, model: str, modes: tuple[ReplyMode, ...], fixed: ReplyMode | None = None
) -> ServerCapabilities:
    """Return the capabilities of a model at an address, shared by all its callers."""
    # dict.setdefault is atomic in CPython, so no lock is needed.
    return _known.setdefault((address, model, fixed), ServerCapabilities(modes, fixed))
