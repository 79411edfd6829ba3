"""Model strings, which name the model, recording or plug-in that fills a role.

offline                      the rules on this machine
openai:gpt-4o, openai        a provider and its model; without one, the vendor's default
replay:FILE (MODEL, DATE)    recorded replies, with the model that gave them
local:FOLDER, dspy:NAME      a plug-in of another package
offline,MODEL                a verifier: the rules first, then MODEL for what they leave open
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

OFFLINE = "offline"
"""The model string of the rules on this machine."""
STAGES = ","
"""Separates the two stages of a verifier."""
REPLAY = "replay:"
"""Prefix of the model string of recorded replies: ``replay:FILE``."""
DEMO_REPLIES = "demo"
"""Used instead of a file name for the replies that ship with the demo (``data/replies``)."""

# "replay:a (b).jsonl (openai:gpt-4o, 2026-03-01)". A file's name may hold line breaks (DOTALL) and
# parentheses. Names of models have none, because ``recordings.shown_name`` replaces them.
_REPLAYED = re.compile(
    r"replay:(?P<file>.+?)(?: \((?P<model>[^()]+), (?P<date>\d{4}-\d\d-\d\d)\))?", re.DOTALL
)


@dataclass(frozen=True)
class ModelRef:
    """A parsed model string; ``str()`` gives the string.

    Attributes:
        provider: The part before the colon: a provider, ``offline``, ``replay`` or a kind of
            plug-in.
        name: The part after the colon: a model, file or folder. None if there is no colon.
        after_offline: Whether the offline checks come first, and this model only judges the claims
            that they leave open.
        recorded_model: For recorded replies, the model that gave them; empty if the file wasn't
            read yet.
        recorded_date: For recorded replies, the date of the last one (ISO 8601).

    """

    provider: str
    name: str | None = None
    after_offline: bool = False
    recorded_model: str = ""
    recorded_date: str = ""

    @staticmethod
    @lru_cache(maxsize=1024)
    def parse(string: str) -> ModelRef:
        """Parse a model string. Every string can be parsed; whether it names a model that exists is
        checked where it is looked up.
        """
        first, comma, second = string.partition(STAGES)
        after_offline = bool(comma) and first.strip() == OFFLINE
        string = (second if after_offline else string).strip()
        if match := _REPLAYED.fullmatch(string):
            return ModelRef("replay", match[1], after_offline, match[2] or "", match[3] or "")
        provider, colon, name = string.partition(":")
        return ModelRef(provider.strip(), name.strip() if colon else None, after_offline)

    def __str__(self) -> str:
        string = self.provider if self.name is None else f"{self.provider}:{self.name}"
        if self.recorded_model:
            string = f"{string} ({self.recorded_model}, {self.recorded_date})"
        return f"{OFFLINE}{STAGES}{string}" if self.after_offline else string

    @property
    def alone(self) -> ModelRef:
        """The same model without the offline checks before it."""
        return replace(self, after_offline=False)

    @property
    def is_offline(self) -> bool:
        """Whether only the rules on this machine are meant."""
        return self == ModelRef(OFFLINE)

    @property
    def is_replay(self) -> bool:
        """Whether recorded replies are meant, possibly after the offline checks."""
        return self.provider == "replay" and bool(self.name)
