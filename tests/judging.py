"""Decided cases on which a team and a default judge differ in two ways, and a scripted judge.

The judge replies as a reader gives it to whoever reads the prompt: it flags rounded figures, which
this team doesn't mind, and doesn't know that this team wants a currency with each price. With a
house rule about one of them, it names the rule.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.schema.judge import HouseRule
from masis.services import Workbench
from masis.settings import Settings
from tests.reviewing import decide
from tests.served_replies import Behaviour, Request, reply_with, sensible
from tests.serving_models import ModelServer

ADA, LEA = Actor(name="Ada"), Actor(name="Lea", roles=("lead",), authenticated=True)
KEY = "loopback/judge"

ROUNDED_RULE = HouseRule(
    id="rounding",
    sentence="A rounded figure doesn't matter if the evidence has the exact one.",
    force="does_not_matter",
    issue_types=("ambiguity",),
)
CURRENCY_RULE = HouseRule(
    id="currency",
    sentence="A price without its currency is a serious issue.",
    force="must_not",
    severity="high",
)
ROUNDED_REASON = "Rounded figures are fine for our readers."
CURRENCY_REASON = "A price without its currency is useless."
PLACES = ("Bonn", "Graz", "Oslo", "Lyon", "Turin", "Porto", "Malmo", "Ghent")


def a_decided_case(kind: str, number: int) -> Case:
    """Return a case of a kind: ``rounded``, ``price`` or ``plain``."""
    place = PLACES[number % len(PLACES)]
    exact = 1204 + 7 * number
    texts = {
        "rounded": (
            f"How many seats does the hall of {place} have?",
            f"The hall of {place} has about {round(exact, -2)} seats [1].",
            f"The hall of {place} has about {round(exact, -2)} seats, exactly {exact}.",
        ),
        "price": (
            f"What does a ticket in {place} cost?",
            f"A ticket in {place} costs {number + 3} [1].",
            f"A ticket in {place} costs {number + 3} euros.",
        ),
        "plain": (
            f"What color is the bridge of {place}?",
            f"The bridge of {place} is grey [1].",
            f"The bridge of {place} is grey.",
        ),
    }
    query, answer, evidence = texts[kind]
    return Case.model_validate(
        {
            "id": f"{kind}-{number}",
            "query": query,
            "answer": answer,
            "evidence": [{"id": "1", "text": evidence}],
        }
    )


VERDICTS: dict[str, tuple[str, str]] = {
    "rounded": ("approve", ROUNDED_REASON),
    "price": ("reject", CURRENCY_REASON),
    "plain": ("approve", ""),
}


def read_as_a_judge(request: Request) -> Behaviour | None:
    """Return the reply of the scripted judge."""
    if "critique" not in request.schema_name:
        return reply_with(sensible(request, "none"))
    answer = "".join(request.fences("ANSWER")[:1])
    rules = [json.loads(row) for row in "".join(request.fences("HOUSE_RULES")).splitlines()]
    named = {
        word: row["id"]
        for row in rules
        for word in ("rounded", "currency")
        if word in row["sentence"].casefold()
    }
    issues: list[dict[str, Any]] = []
    if "about" in answer:
        issues.append(an_issue_of("The figure is rounded.", answer, named.get("rounded", "")))
    if "costs" in answer and "currency" in named:
        issues.append(an_issue_of("The price has no currency.", answer, named["currency"]))
    return reply_with(
        {
            "critique_reasoning": "Read sentence by sentence.",
            "issues": issues,
            "conflicting_evidence": [],
            "confidence": 0.9,
            "overall_quality_score": 0.9,
            "critique_confidence": 0.9,
        }
    )


def an_issue_of(description: str, answer: str, rule: str) -> dict[str, Any]:
    """Return an issue as the critic's reply has it."""
    house = {"house_rule": rule} if rule else {}
    return {
        "type": "ambiguity",
        "severity": "high",
        "description": description,
        "reasoning": "The evidence says more.",
        "location": "",
        "suggestion": "Say it exactly.",
        "evidence_ids": [],
        **house,
    }


def judged_by(server: ModelServer) -> Settings:
    """Return settings with the scripted judge as critic; all other roles are offline."""
    return Settings.model_validate(
        {
            "critic": "here:judge",
            "providers": {
                "here": {"kind": "openai", "address": server.address, "key_env": "SCRIPTED_KEY"}
            },
            "max_iterations": 1,
            "evaluate": "never",
            "accept_without_exam": True,
            "spot_check_share": 0,
            "retry_base_s": 0.01,
            "call_deadline_s": 60.0,
            "iteration_deadline_s": 120.0,
            "loop_deadline_s": 240.0,
        }
    )


def fill_decided(workbench: Workbench, each_kind: int = 8, *, blind: bool = True) -> None:
    """Audit and decide cases of all kinds."""
    shown = () if blind else ("marks",)
    for kind, (verdict, reason) in VERDICTS.items():
        for number in range(each_kind):
            case = a_decided_case(kind, number)
            workbench.cases.add(ADA, [case])
            workbench.audits.audit(ADA, case)
            decide(
                workbench,
                case.id,
                verdict,
                "Bo",
                reason=reason or "read",
                iteration=1,
                machine_shown=shown,
            )


def configure(folder: Path, server: ModelServer) -> None:
    """Write a configuration file with the scripted judge's provider, and its key as a secret."""
    (folder / "masis.toml").write_text(
        f'[providers.here]\nkind = "openai"\naddress = "{server.address}"\n'
        'key_env = "SCRIPTED_KEY"\n[prices."here:judge"]\ninput = 2.5\noutput = 10\n'
    )
    secrets = folder / "masis.secrets.toml"
    secrets.write_text(f'SCRIPTED_KEY = "{KEY}"\n')
    secrets.chmod(0o600)


def make_decided(path: Path, server: ModelServer) -> None:
    """Make a database with 24 decided cases of three kinds. The key must be set."""
    workbench = Workbench.open(path, judged_by(server))
    fill_decided(workbench)
    workbench.close()


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    """Serve the scripted judge."""
    with ModelServer(read_as_a_judge) as serving:
        yield serving


@pytest.fixture(scope="module")
def decided_database(server: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a database with the decided cases, to copy."""
    path = tmp_path_factory.mktemp("judge") / "decided.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCRIPTED_KEY", KEY)
        make_decided(path, server)
    return path
