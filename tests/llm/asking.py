"""What tests of models share: a prompt, a reply's form, and a model at a scripted server."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from masis.audit.run_control import RunControl
from masis.llm.client.model import Model
from masis.llm.registry import asker
from masis.llm.roles.prompting import Prompt
from masis.llm.roles.replies import Number
from masis.schema.providers import ProviderSettings, Wire
from masis.settings import Settings
from tests.serving_models import ModelServer

KEY = "loopback/0123456789.abcdef"
PROMPT = Prompt("You judge.", "QUESTION how long?\nEVIDENCE ten metres", "Judge the answer: SECRET ANSWER.", "test/1+0")
WIRES: tuple[Wire, ...] = ("openai", "anthropic")


class Judged(BaseModel):
    """A reply of three kinds of fields."""

    reasons: list[str]
    sound: bool
    confidence: Number


def model_at(
    server: ModelServer | str,
    wire: Wire = "openai",
    control: RunControl | None = None,
    *,
    model: str = "judge-1",
    concurrency: int | None = None,
    mode: Any = None,
    effort: Any = None,
    **changes: Any,
) -> Model:
    """The model ``scripted:judge-1`` at this server, whose waits are short."""
    address = server if isinstance(server, str) else server.address
    table = ProviderSettings(
        kind=wire,
        address=address,
        key_env="SCRIPTED_KEY",
        concurrency=concurrency,
        adapts=False,
        mode=mode,
        effort=effort,
    )
    given = {"retry_base_s": 0.01, "retry_cap_s": 0.05} | changes
    settings = Settings.model_validate({"providers": {"scripted": table}, **given})
    return asker(f"scripted:{model}", "critic", control or RunControl(), settings)
