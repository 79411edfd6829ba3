"""Prompts: versioned files, and fences around every text from outside.

A prompt has three parts, so that providers can cache what calls of one run share: ``frame`` (the same for all roles),
``shared`` (question and evidence) and ``task`` (the role's instructions, then the answer and what else it is to judge).
"""

from __future__ import annotations

from typing import NamedTuple


class Prompt(NamedTuple):
    """What a model is sent; ``version`` names the prompt file, its version and a digest of its text."""

    frame: str
    shared: str
    task: str
    version: str
