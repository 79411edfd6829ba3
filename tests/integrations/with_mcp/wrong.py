"""Calls that are wrong, and what the answer must say."""

from __future__ import annotations

from typing import Any

from tests.integrations.with_mcp.door import BRIDGE

WEIR = {**BRIDGE, "id": "weir"}
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("critique_answer", {}, "draft: is missing. Add it. sourceIds: is missing."),
    (
        "critique_answer",
        {"query": 7, "draft": "d", "sourceIds": "weir"},
        "query: is a number, must be text. Put it in quotes. sourceIds: is text, must be a list.",
    ),
    (
        "critique_answer",
        {"query": "q", "draft": "d", "sourceIds": [], "stricktness": "strict"},
        "There is no argument stricktness (did you mean strictness?)",
    ),
    (
        "critique_answer",
        {"query": "q", "draft": "d", "sourceIds": ["weir/1"], "strictness": "hard"},
        "Use one of 'lenient', 'moderate' or 'strict'.",
    ),
    ("critique_answer", {"query": "q", "draft": "d", "sourceIds": []}, "sourceIds: is empty"),
    (
        "critique_answer",
        {"query": "q", "draft": "d", "sourceIds": ["weir/7", "weirs/1", "seven"]},
        (
            "case 'weir' has no evidence '7' (near: 'weir/1', 'weir/2'); there is no case 'weirs' (near: 'weir'); "
            "there is no stored evidence 'seven'"
        ),
    ),
    ("critique_answer", {"query": "q", "draft": "d", "sourceIds": ["weir"]}, "'weir' is a case, not evidence of one"),
    (
        "critique_answer",
        {"query": "q", "draft": "d" * 150_001, "sourceIds": ["1"]},
        "holds 150,001 characters, at most 150,000 are taken",
    ),
    ("audit_citations", {"answer": "It is."}, "give evidence, or sourceIds of stored evidence"),
    ("audit_citations", {"answer": " ", "sourceIds": ["1"]}, "answer: is empty"),
    (
        "audit_citations",
        {"answer": "It is.", "evidence": [{"id": "1"}, {"id": "1"}]},
        "evidence[1].id: repeats the id 1 of evidence[0]",
    ),
    ("verify_claims", {"claims": [], "sourceIds": ["1"]}, "claims: holds nothing"),
    ("verify_claims", {"claims": ["x", 3], "sourceIds": ["1"]}, "claims[1]: is a number, must be text"),
    ("verify_claims", {"claims": ["x"] * 101, "sourceIds": ["1"]}, "holds 101 claims, at most 100 are taken"),
    ("run_audit", {}, "give either caseId or case"),
    ("run_audit", {"caseId": "weir", "case": WEIR}, "give either caseId or case"),
    ("run_audit", {"caseId": {}}, "arguments: caseId: is an object, must be text."),
    ("run_audit", {"caseId": "wier"}, "there is no case 'wier' (near: 'weir')"),
    ("run_audit", {"case": {"query": "q", "evidence": [{"id": 1}]}}, "case.evidence[0].id: is a number, must be text"),
    ("run_audit", {"case": {**WEIR, "answer": "Another."}}, "case 'weir' is already here with other content"),
    (
        "run_audit",
        {"case": {"query": "Why?", "evidence": WEIR["evidence"], "response": "So."}},
        '"response" may hold it',
    ),
    ("get_run", {"runId": "weir"}, "'weir' is a case, not a run. It has no run yet; run_audit makes one."),
    ("get_run", {"runId": "0" * 32}, "there is no run '00000000000000000000000000000000'"),
    ("get_case", {"caseId": "wei"}, "there is no case 'wei' (near: 'weir')"),
    ("list_queue", {"limit": 0}, "limit"),
    ("list_queue", {"states": ["open"]}, "Use one of 'new', 'running'"),
    ("list_queue", {"cursor": "!"}, "is not a cursor of this list"),
    ("search_evidence", {"text": ""}, "text: is empty"),
    ("decide", {"runId": "x", "verdict": "approve"}, "There is no tool 'decide'. There are: critique_answer"),
]
