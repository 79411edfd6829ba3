"""An order of the queue is one entry of ``ORDERS``, from which everything else is derived."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from masis.cli import main
from masis.cli.desk import queue as queue_command
from masis.services import Workbench
from masis.services.records import ORDERS, CaseFilter, QueueOrder
from masis.ui.queue.case_list import case_columns, case_row
from tests.rooms import needs_integrations
from tests.ui.conftest import open_page, texts

LONGEST = QueueOrder(
    name="test-only",
    label="Longest question first",
    explanation="The case with the longest question is first.",
    key="length(query_start)",
    descending=True,
    figure="Critic",
    field="confidence",
)


@pytest.fixture
def longest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add an order as a new entry of the table does."""
    monkeypatch.setitem(ORDERS, LONGEST.name, LONGEST)


@pytest.mark.usefixtures("longest")
def test_a_new_order_sorts_the_list_and_shows_its_figure(audited_workbench: Workbench) -> None:
    found = audited_workbench.cases.find(CaseFilter(order="test-only"))
    lengths = [len(row.query) for row in found.rows]
    assert lengths == sorted(lengths, reverse=True)
    assert len(set(lengths)) > 1
    assert case_columns("test-only")[-1]["title"] == "Critic"
    cell: Any = case_row(found.rows[0], {}, order="test-only")["cells"][-1]
    assert cell["score"] == found.rows[0].confidence


@pytest.mark.usefixtures("longest")
def test_a_new_order_is_known_to_the_page_and_its_address(audited_workbench: Workbench) -> None:
    app = open_page("queue", order="test-only")
    (selector,) = [box for box in app.selectbox if box.label == "Order"]
    assert selector.value == "test-only"
    assert "Longest question first" in selector.options
    assert "The case with the longest question is first." in texts(app)


@pytest.mark.usefixtures("longest")
def test_a_new_order_is_known_to_the_command(audited_workbench: Workbench) -> None:
    database = ["--db", str(audited_workbench.database)]
    listed = CliRunner().invoke(main, ["queue", "--order", "test-only", *database])
    assert listed.exit_code == 0, listed.stderr
    refused = CliRunner().invoke(main, ["queue", "--order", "shortest", *database])
    assert "'test-only'" in refused.stderr
    (option,) = [param for param in queue_command.params if param.name == "order"]
    assert "test-only" in option.type.to_info_dict()["choices"]


@needs_integrations
@pytest.mark.usefixtures("longest")
def test_a_new_order_is_known_to_the_tool() -> None:
    from masis.integrations.mcp.tools import TOOLS

    schema = TOOLS["list_queue"].input_schema()["properties"]["order"]
    assert schema["enum"] == [*ORDERS]
    assert "test-only: The case with the longest question is first." in schema["description"]
