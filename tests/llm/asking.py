"""Shared by model tests: a prompt, a reply type, a case, and models at a scripted server."""

from __future__ import annotations

import itertools
import socket
from typing import Any

from pydantic import BaseModel

from masis.audit.control.run_control import RunControl
from masis.llm.client.model import Model
from masis.llm.registry import model_in_role
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


class SampleReply(BaseModel):
    """A reply with a list, a boolean and a number."""

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
    """Return the model ``scripted:judge-1`` at this server, with short retry delays."""
    address = server if isinstance(server, str) else server.address
    provider = ProviderSettings(
        kind=wire,
        address=address,
        key_env="SCRIPTED_KEY",
        concurrency=concurrency,
        adapts=False,
        mode=mode,
        effort=effort,
    )
    values = {"retry_base_s": 0.01, "retry_cap_s": 0.05} | changes
    settings = Settings.model_validate({"providers": {"scripted": provider}, **values})
    return model_in_role(f"scripted:{model}", "critic", control or RunControl(), settings)


def closed_port() -> int:
    """Return a port that no server listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def settings_here(server: ModelServer, **changes: Any) -> Settings:
    """Fill every role with the scripted server's ``here:m``, with short retry delays."""
    provider = {"kind": "openai", "address": server.address, "key_env": "SCRIPTED_KEY"}
    values = {"providers": {"here": provider}, "retry_base_s": 0.01} | changes
    return Settings.model_validate(dict.fromkeys(ROLES, "here:m") | values)


def settings_for(server: ModelServer, wire: str, dead_role: str | None = None) -> Settings:
    """Fill all roles from the scripted server, each with a new model name.

    New names keep server capabilities learned by other tests out of the way. No exam is required,
    so only the replies decide whether an answer is accepted.
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
            # Long, because a busy machine must not make a call time out.
            "call_deadline_s": 60.0,
            "iteration_deadline_s": 120.0,
            "loop_deadline_s": 240.0,
            "max_iterations": 2,
            "accept_without_exam": True,
        }
    )
