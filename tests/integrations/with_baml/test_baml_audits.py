"""The validator in an audit: replies of a server mended, recorded and counted; answers passed or
refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from masis.errors import InvalidRevision
from masis.integrations.baml import BamlValidator
from masis.schema.audit import JudgedBy, Revision
from masis.schema.run import Event, Run
from masis.services import Workbench
from masis.ui.new_audit.live_run import build_timeline
from masis.views.spending import usage_text
from tests.audit.factories import context
from tests.llm.asking import CASE, settings_for
from tests.reviewing import ADA
from tests.served_replies import Behaviour, Request, reply_with, sensible
from tests.serving_models import ModelServer


def careless(request: Request) -> Behaviour:
    """JSON as a small model writes it: a fence, a name without quotes, a comma too many, Python's
    words.
    """
    text = json.dumps(sensible(request), indent=2)
    for word, spelt in (("true", "True"), ("false", "False"), ("null", "None")):
        text = text.replace(f": {word}", f": {spelt}")
    first_bare = text[:-2].replace('"', "", 2)
    return reply_with(f"Here you are:\n```json\n{first_bare},\n}}\n```")


def audited(script: Any, validator: str, tmp_path: Path) -> tuple[Run, list[Event], Workbench]:
    events: list[Event] = []
    with ModelServer(script, issues="always") as server:
        settings = settings_for(server, "openai").model_copy(update={"output_validator": validator})
        bench = Workbench.open(tmp_path / f"{validator}.db", settings)
        bench.cases.add(ADA, [CASE])
        run = bench.audits.audit(ADA, CASE, on_event=events.append)
    return run, events, bench


@pytest.mark.spec("REQ-CRITIC-028")
def test_repaired_replies_are_recorded_and_counted(tmp_path: Path) -> None:
    strict, _, _ = audited(careless, "pydantic", tmp_path)
    assert strict.iterations[0].critique.unscored
    assert strict.iterations[0].claim_report.unscored or strict.iterations[0].claims == ()
    mended, events, bench = audited(careless, "baml", tmp_path)
    assert mended.iterations[0].critique.unscored is None
    assert mended.iterations[0].evaluation
    assert mended.iterations[0].evaluation.unscored is None
    assert {call.outcome for call in mended.calls} == {"answered"}
    assert {call.tries for call in mended.calls} == {1}
    assert all("a comma too many" in call.repaired for call in mended.calls)
    assert mended.usage.repaired == len(mended.calls) > 2
    assert bench.store.runs.get(mended.id) == mended
    told = [event for event in events if event.kind == "call_repaired"]
    assert len(told) == len(mended.calls)
    assert "the reply was repaired before it was read" in told[0].message
    assert f"{len(mended.calls)} replies repaired" in usage_text(mended.usage)
    shown = build_timeline(events, "finished", events[-1].at)
    assert any("repaired" in line for group in shown["groups"] for line in group["retries"])


def revision(answer: str) -> Revision:
    judge = JudgedBy(model="test", version="1")
    return Revision(
        revised_answer=answer,
        changes_explanation="Mended.",
        updated_confidence=0.9,
        judged_by=judge,
    )


class Answered(BaseModel):
    """A team's own form of an answer."""

    text: str
    sources: list[str]


@pytest.mark.spec("REQ-CRITIC-028", "CRITIC-ERR-006")
def test_an_answer_passes_unchanged_or_is_rejected() -> None:
    passing = 'Ten "metres" {long} [chunk_1].\nIt\'s so, he said: 5 > 3, \\n and so on; ```code``` and 🌉.'
    assert BamlValidator().validate(revision(passing), context()).revised_answer == passing
    for bad in ("", "x\x00", "It is long [chunk_1"):
        with pytest.raises(InvalidRevision):
            BamlValidator().validate(revision(bad), context())


@pytest.mark.spec("REQ-CRITIC-028")
def test_an_answer_is_coerced_into_a_custom_model_or_rejected() -> None:
    ours = BamlValidator(Answered)
    good = '{"text": "120 metres [chunk_1].", "sources": ["chunk_1"]}'
    assert ours.validate(revision(good), context()).revised_answer == good
    nearly = "```json\n{'text': '120 metres [chunk_1].', 'sources': ['chunk_1',],}\n```"
    found = ours.validate(revision(nearly), context())
    assert Answered.model_validate_json(found.revised_answer) == Answered.model_validate_json(good)
    assert (
        "Its form was mended: quotes of another kind, a comma too many" in found.changes_explanation
    )
    for bad in (nearly[:-20], "120 metres.", '{"text": "120"}'):
        with pytest.raises(InvalidRevision, match="isn't a valid Answered"):
            ours.validate(revision(bad), context())
