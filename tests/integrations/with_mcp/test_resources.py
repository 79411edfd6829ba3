"""Runs and cases as resources, and both generations of the protocol."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import ResourceTemplateReference

from masis.schema.case import Case
from masis.schema.run import Run
from tests.integrations.with_mcp.mcp_server import BRIDGE, McpServer, structured_result
from tests.reviewing import ADA


def test_runs_and_cases_are_json_resources(mcp_server: McpServer) -> None:
    case = {**BRIDGE, "id": "à/b%2F c?#", "query": "How long is the bridge of à?"}
    audited, fetched = (
        mcp_server.result("run_audit", case=case),
        mcp_server.result("get_case", caseId=case["id"]),
    )
    (run_resource,), (case_resource,) = (
        mcp_server.use(lambda client, uri=result["uri"]: client.read_resource(uri)).contents
        for result in (audited, fetched)
    )
    assert run_resource.mime_type == case_resource.mime_type == "application/json"
    assert Run.model_validate(
        json.loads(run_resource.text)
    ) == mcp_server.workbench().store.runs.get(audited["run_id"])
    assert json.loads(case_resource.text) == fetched
    assert json.loads(case_resource.text)["case"] == case


def test_resources_are_listed_in_pages_newest_first(mcp_server: McpServer) -> None:
    many = [Case.model_validate({**BRIDGE, "id": f"listed-{number}"}) for number in range(60)]
    mcp_server.workbench().cases.add(ADA, many)

    async def walk(client: Client) -> list[Any]:
        pages = [await client.list_resources(cache_mode="refresh")]
        while pages[-1].next_cursor:
            pages.append(await client.list_resources(cursor=pages[-1].next_cursor))
        templates = await client.list_resource_templates()
        with pytest.raises(MCPError) as wrong:
            await client.list_resources(cursor="elsewhere")
        return [pages, templates.resource_templates, wrong.value]

    pages, templates, wrong = mcp_server.use(walk)
    uris = [resource.uri for page in pages for resource in page.resources]
    assert len(pages) >= 2
    assert uris[0] == "masis://case/listed-59"
    assert {f"masis://case/listed-{number}" for number in range(60)} <= set(uris)
    assert len(set(uris)) == len(uris)
    assert [template.uri_template for template in templates] == [
        "masis://run/{run_id}",
        "masis://case/{case_id}",
    ]
    assert wrong.code == -32602


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("masis://run/nothing", "there is no run 'nothing'"),
        ("masis://case/listed", "there is no case 'listed'"),
        (
            "masis://decision/1",
            "there is no resource 'masis://decision/1'. There are masis://run/RUN_ID",
        ),
        ("file:///etc/passwd", "there is no resource"),
        ("masis://case/", "there is no resource"),
    ],
)
def test_an_unknown_resource_is_reported_with_the_known_kinds(
    mcp_server: McpServer, uri: str, expected: str
) -> None:
    with pytest.raises(MCPError) as wrong:
        mcp_server.use(lambda client: client.read_resource(uri))
    assert wrong.value.code == -32602
    assert expected in wrong.value.message


def test_clients_of_the_previous_protocol_are_served(
    mcp_server: McpServer, bridge: dict[str, Any]
) -> None:
    updates: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        updates.append(done)

    async def legacy() -> Any:
        async with mcp_server.client(mode="legacy") as client:
            assert client.instructions is not None
            assert client.server_info.name == "masis-workbench"
            audited = await client.call_tool(
                "run_audit", {"caseId": bridge["id"]}, progress_callback=progress
            )
            return [
                client.protocol_version,
                structured_result(audited),
                await client.read_resource(structured_result(audited)["uri"]),
            ]

    version, audited, resource = mcp_server.run(legacy())
    assert version < "2026"
    assert updates[-1] == 15.0
    assert json.loads(resource.contents[0].text)["id"] == audited["run_id"]


def test_prompts_and_ids_are_completed(mcp_server: McpServer, bridge: dict[str, Any]) -> None:
    template = ResourceTemplateReference(uri="masis://case/{case_id}")

    async def complete_ids(client: Client) -> list[Any]:
        listed = await client.list_prompts()
        prompt = await client.get_prompt(
            "check_draft", {"question": "How long?", "draft": "It is long."}
        )
        with pytest.raises(MCPError) as wrong:
            await client.get_prompt("explain_run", {})
        completion = await client.complete(template, {"name": "case_id", "value": bridge["id"]})
        return [listed.prompts, prompt.messages, wrong.value, completion.completion]

    listed, messages, wrong, completion = mcp_server.use(complete_ids)
    assert [prompt.name for prompt in listed] == ["check_draft", "explain_run", "whats_waiting"]
    assert [(argument.name, argument.required) for argument in listed[1].arguments] == [
        ("run_id", True)
    ]
    assert messages[0].role == "user"
    assert '"draft": "It is long."' in messages[0].content.text
    assert (wrong.code, "run_id: is missing" in wrong.message) == (-32602, True)
    assert bridge["id"] in completion.values
