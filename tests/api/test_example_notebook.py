"""The notebook of the examples, run from its first cell to its last as a notebook would, without
one.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebooks" / "audit.ipynb"


def run_cell(code: str, names: dict[str, Any]) -> Any:
    """Run a cell; return the value of its last line, which a notebook shows."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(NOTEBOOK), "exec"), names)
    return (
        eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)
        if last is not None
        else None
    )


def test_the_example_notebook_runs_and_matches_its_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], len({cell["id"] for cell in notebook["cells"]})) == (
        4,
        len(notebook["cells"]),
    )
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert not any(cell.get("outputs") for cell in notebook["cells"])
    names: dict[str, Any] = {"__name__": "__main__"}
    run, issues, checks, table, chart, _ = (run_cell(cell, names) for cell in cells)
    assert "The Marle bridge is 120 metres long [1]." in run._repr_html_()
    assert set(issues["type"]) == {"hallucination", "contradiction"}
    assert [verdict for verdict, _ in checks] == ["supported", "contradicted"]
    first = table[table.iteration == 1].set_index("case_id").verdict
    assert (first["right"], first["wrong"]) == ("supported", "contradicted")
    assert chart._repr_mimebundle_()
    assert "evidence: is a number, not a list of chunks" in capsys.readouterr().out
