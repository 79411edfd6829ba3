"""The examples of the draft-critique spec, asked through the tool, with drafts of every length checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from masis.schema.case import Case
from masis.services import Workbench
from masis.settings import Settings
from tests.integrations.with_mcp.door import found, inside
from tests.reviewing import ADA

UPLOADS = {
    "id": "uploads",
    "query": "What's the maximum file upload size?",
    "evidence": [{"id": "Doc A", "text": "Free tier: 10MB limit"}, {"id": "Doc B", "text": "Pro tier: 100MB limit"}],
}
TIMEOUT = {"id": "timeout", "query": "What is the timeout?", "evidence": [{"id": "t", "text": "Timeout: 60 seconds"}]}


@pytest.mark.spec("DRAFT-CRITIQUE-MCP", "DRAFT-CRITIQUE-CONFIG")
def test_the_examples_of_the_spec_come_out_as_it_says(tmp_path: Path) -> None:
    database = tmp_path / "spec.db"
    Workbench.open(database).cases.add(ADA, map(Case.model_validate, (UPLOADS, TIMEOUT)))

    async def ask(client: Client) -> list[dict[str, Any]]:
        limit = {
            "query": UPLOADS["query"],
            "draft": "The maximum file upload size is 100MB.",
            "sourceIds": ["uploads/Doc A", "Doc B"],
            "autoRevise": True,
        }
        asked = [limit]
        for draft in ("The timeout is 30 seconds.", "The timeout is 60 seconds."):
            asked.append({"query": TIMEOUT["query"], "draft": draft, "sourceIds": ["t"]})
        return [found(await client.call_tool("critique_answer", each)) for each in asked]

    with inside(database, Settings(draft_min_length=0)) as door:
        limit, wrong, right = door.use(ask)
    assert limit.get("revisedDraft") is None  # offline no condition is understood, and nothing is added
    assert wrong["isValid"] is False
    assert "unsupported" in {issue["type"] for issue in wrong["issues"]}
    assert right["isValid"] is True
    assert right["confidence"] > 0.8
    assert right["metadata"]["sourcesUsed"] == ["t"]
