"""The code and JSON examples in the guides work as written.

Commands in the docs are tested in tests/project/test_docs.py.
"""

from __future__ import annotations

import io
import json
import re
import sys
import textwrap
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from masis.audit.measures.metric_catalogue import METRICS
from masis.cli import main
from masis.schema.case import Case
from masis.schema.review import Decision
from masis.server import ingestion as web
from masis.services import Workbench
from masis.services.arrivals.ingestion import ProgramSource, new_token
from masis.services.arrivals.webhook import Webhook
from masis.settings import Settings
from tests.cli.running import case, example
from tests.loopback import receiver
from tests.reviewing import ADA, submit
from tools import telemetry_reference

DOCS = Path(__file__).resolve().parents[2] / "docs"
# A fenced block with its language ("```python ... ```"), or a run of lines indented by 4 spaces.
BLOCK = re.compile(r"```(\w*)\n([\s\S]*?)```|((?:^    .*\n|^\n)+)", re.MULTILINE)


def blocks(guide: str, language: str = "") -> Iterator[str]:
    """Yield the code blocks of a guide: fenced ones in this language, or indented ones without."""
    for name, fenced, indented in BLOCK.findall((DOCS / f"{guide}.md").read_text(encoding="utf-8")):
        if fenced and name == language:
            yield fenced
        elif indented.strip() and not language:
            yield textwrap.dedent(indented).strip()


def code(guide: str, beginning: str) -> str:
    """Return the first code block of a guide that begins with this text."""
    code_blocks = (*blocks(guide), *blocks(guide, "python"), *blocks(guide, "sh"))
    return next(block for block in code_blocks if block.lstrip().startswith(beginning))


def test_the_documented_mcp_configuration_is_valid() -> None:
    configurations = [json.loads(block) for block in blocks("frameworks", "json")]
    servers = [
        server for config in configurations for server in next(iter(config.values())).values()
    ]
    assert len(servers) == 3
    for server in servers:
        if "command" in server:
            assert server["command"] == "masis"
            assert CliRunner().invoke(main, [*server["args"], "--help"]).exit_code == 0


def test_the_documented_graph_audits_and_waits_for_a_person(tmp_path: Path) -> None:
    pytest.importorskip("langgraph")
    from langgraph.checkpoint.memory import InMemorySaver

    state = case("bridge") | {"draft_answer": "The bridge is 990 metres long [9]."}
    names: dict[str, Any] = {
        "my_synthesizer": lambda graph_state: {"draft_answer": state["draft_answer"]},
        "Path": Path,
    }
    exec(code("frameworks", "from langgraph.graph"), names)
    first, second = code("frameworks", "from masis.integrations.langgraph import keep_node").split(
        "...\n"
    )
    exec(first.replace('"masis.db"', repr(str(tmp_path / "masis.db"))), names)
    graph = names["graph"]
    graph.add_edge("evaluator", "keep")
    graph.add_edge("keep", "person")
    config = names["config"] = {"configurable": {"thread_id": "t"}}
    compiled = names["compiled"] = graph.compile(checkpointer=InMemorySaver())
    compiled.invoke({"user_query": state["query"], "evidence": state["evidence"]}, config)
    exec(second, names)
    ((request,),) = (names["waiting"](compiled.get_state(config)).values(),)
    workbench = names["workbench"]
    ids = {name: request[name] for name in ("case_id", "run_id")}
    submit(
        workbench,
        Decision(reviewer="Ada", verdict="reject", reason="990 is wrong", iteration=1, **ids),
    )
    assert names["resume"](compiled, config, workbench)["final_answer"] is None


def test_telemetry_uses_the_programs_otel_providers() -> None:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry import trace
    from opentelemetry.metrics import get_meter_provider

    names: dict[str, Any] = {
        "Settings": Settings,
        "trace": trace,
        "get_meter_provider": get_meter_provider,
    }
    lines = code("running", "from masis.integrations import telemetry").splitlines()
    exec("\n".join([*lines[:-1], f"started = {lines[-1]}"]), names)
    assert names["started"].on
    names["started"].end()


def test_the_documented_metrics_match_the_code() -> None:
    page = telemetry_reference.PAGE.read_text(encoding="utf-8")
    assert page == telemetry_reference.page(page), "run: python tools/telemetry_reference.py"
    assert all(f"| `{metric.name}` |" in page for metric in METRICS)


def test_the_telemetry_example_prints_nested_spans_and_metrics() -> None:
    pytest.importorskip("opentelemetry.sdk")
    result = example("otel/audit.py")
    printed = [json.loads(line) for line in result.stderr.splitlines()]
    spans = {record["name"]: record for record in printed if "context" in record}
    assert {span["context"]["trace_id"] for span in spans.values()} == {
        f"0x{result.stdout.split()[-1]}"
    }
    assert spans["invoke_workflow audit"]["parent_id"], (
        "its parent is the caller's span, which isn't exported"
    )
    assert "On Sundays" in result.stdout
    (metrics,) = [json.dumps(record) for record in printed if "resource_metrics" in record]
    for name in ("critique_hallucination_rate", "masis.loop.duration"):
        assert f'"name": "{name}"' in metrics


@pytest.mark.spec("REQ-CRITIC-028")
def test_the_baml_example_prints_the_documented_output() -> None:
    pytest.importorskip("baml_py")
    result = example("baml/mend.py")
    assert result.stdout.splitlines() == [
        "2 claims; mended: quotes of another kind, a comment, a comma too many",
        "cut off: None",
        "passed: The bridge is 120 metres long [1].",
    ]
    assert result.stdout in (DOCS / "frameworks.md").read_text(encoding="utf-8")


def test_the_documented_custom_validator_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names: dict[str, Any] = {"__name__": "acme.answers"}
    monkeypatch.setitem(sys.modules, "acme.answers", sys.modules[__name__])
    exec(code("frameworks", "# acme/answers.py"), names)
    assert names["validator"].name == "acme"


def test_the_documented_client_sends_a_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, digest = new_token()
    workbench = Workbench.open(tmp_path / "inbox.db", Settings())
    app = web.application(
        workbench.ingestion, {"chatbot": ProgramSource(name="chatbot", token_sha256=digest)}
    )
    names: dict[str, Any] = {
        "question": "How long?",
        "answer": "120 m [1].",
        "chunk": "It is 120 m long.",
    }
    monkeypatch.setenv("TOKEN", token)
    with TestClient(app, base_url="http://127.0.0.1:8700") as client:

        def urlopen(request: Any) -> io.BytesIO:
            response = client.post(
                request.full_url, content=request.data, headers=dict(request.header_items())
            )
            assert response.status_code == 202
            return io.BytesIO(response.content)

        monkeypatch.setattr("urllib.request.urlopen", urlopen)
        exec(code("ingestion", "import json, os"), names)
    workbench.close()


def test_the_documented_webhook_check_verifies_a_call(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(code("ingestion", "import hmac, time"), names)
    with (
        receiver() as (address, calls),
        closing(Workbench.open(tmp_path / "webhook.db")) as workbench,
    ):
        settings = Settings(webhook_address=address, webhook_private=True)
        webhook = Webhook(workbench.store, settings, "0123456789abcdef" * 2)
        workbench.cases.add_one(ADA, Case.model_validate(case("a")))
        workbench.store.inbox.record_arrivals([workbench.store.cases.get("a")], "chatbot")
        workbench.audits.audit(ADA, workbench.store.cases.get("a"))
        webhook.deliver()
    (call,) = calls
    header, is_genuine = call.headers["masis-signature"], names["is_genuine"]
    assert is_genuine(header, call.body, "0123456789abcdef" * 2)
    assert not is_genuine(header, call.body + b" ", "0123456789abcdef" * 2)
    assert not is_genuine(header, call.body, "0123456789abcdef" * 3)
    assert not is_genuine(header, call.body, "0123456789abcdef" * 2, within_s=-1)
    documented = next(
        json.loads(block) for block in blocks("ingestion", "json") if "case.decided" in block
    )
    sent = json.loads(call.body)
    assert (documented.keys(), documented["case"].keys()) == (sent.keys(), sent["case"].keys())
