"""Check and audit an answer over the Model Context Protocol, as an agent would.

pip install '.[mcp]'
python examples/mcp/check_an_answer.py [ADDRESS]

Starts `masis mcp` on a database of its own, or uses the server at ADDRESS
(http://127.0.0.1:8765/mcp).
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

CASE = {
    "id": "eiffel",
    "query": "How tall is the Eiffel Tower, and when was it finished?",
    "answer": (
        "It is 330 metres tall [1]. The tower was finished on 31 March 1899, after two years of"
        " work [7]."
    ),
    "evidence": [
        {"id": "1", "text": "The Eiffel Tower is 330 metres tall, antennas included."},
        {"id": "2", "text": "The tower was finished on 31 March 1889, after two years of work."},
    ],
}
DRAFT = (
    "The Eiffel Tower is 330 metres tall. The tower was finished on 31 March 1899, after two years"
    " of work."
)


async def main(address: str | None) -> None:
    """Audit a case, then check a draft against the evidence stored with it."""
    with tempfile.TemporaryDirectory() as folder:
        own = StdioServerParameters(
            command=sys.executable,
            args=["-m", "masis.cli", "mcp", "--db", str(Path(folder) / "example.db")],
        )
        async with Client(address or own) as client:
            run = await called(client, "run_audit", {"case": CASE})
            print(
                f"run {run['state']}: quality {run['quality']:.2f}, needs a person:"
                f" {run['needs_review']}"
            )
            for issue in run["issues"]:
                print(f"  {issue['severity']}: {issue['description']}")
            print(f"chosen: {run['final_answer']}")

            found = await called(client, "search_evidence", {"text": "Eiffel Tower"})
            ids = [chunk["source_id"] for chunk in found["evidence"]]
            draft = {"query": CASE["query"], "draft": DRAFT, "sourceIds": ids, "autoRevise": True}
            critique = await called(client, "critique_answer", draft)
            print(f"draft valid: {critique['isValid']}")
            for issue in critique["issues"]:
                print(f"  {issue['severity']} {issue['type']}: {issue['suggestion']}")
            print(f"better: {critique.get('revisedDraft')}")

            waiting = await called(client, "list_queue", {"states": ["needs_review"]})
            print(f"waiting for a person: {[case['id'] for case in waiting['cases']]}")


async def called(client: Client, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call a tool, print its progress to stderr, and return its structured result."""

    async def told(done: float, total: float | None, message: str | None) -> None:
        print(f"{tool}: {done:g} of {total:g}: {message}", file=sys.stderr)

    result = await client.call_tool(tool, arguments, progress_callback=told)
    if result.is_error or result.structured_content is None:
        raise SystemExit(f"{tool}: {result.content[0].text}")  # says what is wrong and what to do
    return result.structured_content


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else None))
