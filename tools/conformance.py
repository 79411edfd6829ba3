"""Make docs/CONFORMANCE.md from docs/rules.toml and the tests marked with the rules' ids.

python tools/conformance.py           # writes the page
python tools/conformance.py --check   # says whether it is current
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
RULES = ROOT / "docs" / "rules.toml"
PAGE = ROOT / "docs" / "CONFORMANCE.md"
INTRODUCTION = """# Conformance

Which rule of the five specs stands where, and which test shows it. Made by `python tools/conformance.py` from
`docs/rules.toml` and the marks on the tests; a test fails when this page is stale, when a built rule has no test,
or when a mark names no rule. "Not built yet" means just that.

Where the specs leave a step's failure to a number (0.5 or 0.3 for a reply that can't be read), the step is unscored
instead, with a reason. One reason for review is added to the design's: a chosen answer that is a machine's revision is
read by a person before it passes for the answer (`review_revised`, on by default).
"""


class Rule(NamedTuple):
    """One rule of a spec in our words; ``state`` is ``here`` or ``open``."""

    id: str
    spec: str
    section: str
    rule: str
    state: str
    constant: str = ""
    code: str = ""


def rules() -> list[Rule]:
    """The inventory, in its order."""
    return [Rule(**entry) for entry in tomllib.loads(RULES.read_text(encoding="utf-8"))["rule"]]


@cache
def marked_tests() -> dict[str, list[str]]:
    """Rule id -> the tests marked with it, as ``tests/file.py::name``."""
    found: dict[str, list[str]] = defaultdict(list)
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        for test, rule in _marks(ast.parse(file.read_text(encoding="utf-8"))):
            found[rule].append(f"{file.relative_to(ROOT).as_posix()}::{test}")
    return found


def _marks(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            if (
                isinstance(decorator, ast.Call)
                and ast.unparse(decorator.func) == "pytest.mark.spec"
            ):
                for argument in decorator.args:
                    if isinstance(argument, ast.Constant):
                        yield node.name, str(argument.value)


def page() -> str:
    """The page as it should be."""
    tests = marked_tests()
    lines = [INTRODUCTION]
    inventory = rules()
    for spec in dict.fromkeys(rule.spec for rule in inventory):
        here = [rule for rule in inventory if rule.spec == spec]
        built = sum(rule.state == "here" for rule in here)
        lines += [f"## {spec}", "", f"{built} of {len(here)} rules are built.", ""]
        lines += ["| rule | in our words | constant | code | shown by |", "|---|---|---|---|---|"]
        lines += [_row(rule, tests.get(rule.id, [])) for rule in here]
        lines.append("")
    return "\n".join(lines)


def _row(rule: Rule, tests: list[str]) -> str:
    shown = "<br>".join(
        f"`{test.split('::')[0].removeprefix('tests/')}` {_sentence(test)}" for test in tests
    )
    code = f"`{rule.code}`" if rule.code else ""
    return (
        f"| {rule.id}<br>{rule.section} | {rule.rule} | {rule.constant} | {code} |"
        f" {shown or 'Not built yet'} |"
    )


def _sentence(test: str) -> str:
    return test.split("::")[1].removeprefix("test_").replace("_", " ")


def main() -> int:
    """Write the page, or with --check compare it."""
    wanted = page()
    if "--check" in sys.argv[1:]:
        current = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
        if current != wanted:
            print("docs/CONFORMANCE.md is stale: run python tools/conformance.py", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
