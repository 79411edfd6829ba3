"""docs/citations.md says what the engine does: its examples are run as they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from masis.audit.citations import audit_citations
from masis.schema.case import Evidence

PAGE = Path(__file__).resolve().parents[3] / "docs" / "citations.md"


def rows(table: str) -> Iterator[list[str]]:
    """The cells of the tables under the comment that names them."""
    for part in PAGE.read_text(encoding="utf-8").split(f"<!-- {table} -->")[1:]:
        lines = part.strip().splitlines()
        for line in lines[2:]:
            if not line.startswith("|"):
                break
            yield [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def written(cell: str) -> str:
    return cell.strip("`").strip(" " if cell.startswith("``") else "").replace("⏎", "\n")


def evidence(cell: str) -> list[Evidence]:
    pairs = [entry.partition("=") for entry in cell.split(", ")]
    return [Evidence(id=id_, source=source or None) for id_, _, source in pairs]


@pytest.mark.spec("MASIS-CRITIC-P3")
@pytest.mark.parametrize("row", list(rows("markers")), ids=lambda row: row[0])
def test_a_documented_marker_names_what_the_page_says(row: list[str]) -> None:
    answer, ids, names = row
    found = [
        f"{citation.evidence_id} ({citation.resolved_by})" if citation.evidence_id else f"**{citation.reference}**"
        for citation in audit_citations(written(answer), evidence(ids)).citations
    ]
    assert (", ".join(found) or "nothing") == names


@pytest.mark.spec("MASIS-CRITIC-P3", "MASIS-CRITIC-P4")
@pytest.mark.parametrize("row", list(rows("departures")), ids=lambda row: row[0])
def test_a_documented_departure_is_one(row: list[str]) -> None:
    answer, ids, literal, here, _ = row
    for mode, said in (("literal", literal), ("standard", here)):
        audit = audit_citations(written(answer), evidence(ids), mode=mode)  # type: ignore[arg-type]
        assert f"{', '.join(audit.invalid_citations) or '-'}; {len(audit.uncited_claims)}" == said, mode


def test_the_page_has_its_examples() -> None:
    assert len(list(rows("markers"))) > 50
    assert len(list(rows("departures"))) > 10
    assert not re.search(r"/(?:work|tmp|home)/", PAGE.read_text(encoding="utf-8"))
