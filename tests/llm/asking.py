"""What tests of models share: a prompt, a reply's form, a case, and models at a scripted server."""

from __future__ import annotations

import itertools
import socket
from typing import Any

from pydantic import BaseModel

from masis.audit.control.run_control import RunControl
from masis.llm.client.model import Model
from masis.llm.registry import asker
from masis.llm.roles.prompting import RolePrompt
from masis.llm.roles.replies import Number
from masis.schema.providers import ProviderKind, ProviderSettings
from masis.settings import ROLES, Settings
from tests.cases import case_of
from tests.serving_models import ModelServer

KEY = "loopback/0123456789.abcdef"
PROMPT = RolePrompt(
    "You judge.",
    "QUESTION how long?\nEVIDENCE ten metres",
    "Judge the answer: SECRET ANSWER.",
    "test/1+0",
)
WIRES: tuple[ProviderKind, ...] = ("openai", "anthropic")
ANSWER = "The bridge is 120 metres long [1]. It was opened in 1931 [2]."
CASE = case_of(
    ANSWER,
    {
        "1": "The bridge is 120 metres long and made of steel.",
        "2": "The bridge was opened in 1931 by the mayor.",
    },
    query="How long is the bridge, and when was it opened?",
)
_names = itertools.count()


class Judged(BaseModel):
    """A reply of three kinds of fields."""

    reasons: list[str]
    sound: bool
    confidence: Number


def model_at(
    server: ModelServer | str,
    wire: ProviderKind = "openai",
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


def closed_port() -> int:
    """A port where nobody listens."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def settings_here(server: ModelServer, **changes: Any) -> Settings:
    """Every role filled by the scripted server's ``here:m``, with short waits."""
    table = {"kind": "openai", "address": server.address, "key_env": "SCRIPTED_KEY"}
    given = {"providers": {"here": table}, "retry_base_s": 0.01} | changes
    return Settings.model_validate(dict.fromkeys(ROLES, "here:m") | given)


def settings_for(server: ModelServer, wire: str, dead_role: str | None = None) -> Settings:
    """All roles on the scripted server, under a model name of their own, so that nothing is
    remembered of others.

    No exam is asked for, so that what lets an answer pass or not is what the reply says.
    """
    address = server.address if wire == "openai" else server.address.removesuffix("/v1")
    providers = {
        "here": {"kind": wire, "address": address, "key_env": "SCRIPTED_KEY"},
        "dead": {
            "kind": wire,
            "address": f"http://127.0.0.1:{closed_port()}",
            "key_env": "SCRIPTED_KEY",
        },
    }
    models = {role: f"{'dead' if role == dead_role else 'here'}:m-{next(_names)}" for role in ROLES}
    return Settings.model_validate(
        {
            **models,
            "providers": providers,
            "retry_base_s": 0.01,
            "retry_cap_s": 0.02,
            # Long: a machine that is busy with other work must not fail a call.
            "call_deadline_s": 60.0,
            "iteration_deadline_s": 120.0,
            "loop_deadline_s": 240.0,
            "max_iterations": 2,
            "accept_without_exam": True,
        }
    )
