"""Show how heavy the project is: lines by package, imports between packages, the slowest tests.

python tools/weight.py [--slowest 20]

A line is code, part of an import, or part of a docstring (of a module, class, function or constant); the others are
blank or comments. The times are those of the last `make test`, which leaves them in ``.run/durations.jsonl``.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
DURATIONS = Path(".run") / "durations.jsonl"
BESIDE = ("pages", "tests", "tools", "benchmarks", "examples")
"""Folders that are counted as one package each, beside those of masis/."""

NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


class Weight(NamedTuple):
    """Files, and their lines by kind."""

    files: int = 0
    lines: int = 0
    code: int = 0
    docstrings: int = 0
    imports: int = 0

    def plus(self, other: Weight) -> Weight:
        """Return the sum of two weights."""
        return Weight(*(one + another for one, another in zip(self, other, strict=True)))


def weight_of(source: str) -> Weight:
    """Return the weight of a file with this text."""
    docstrings, imports, code = set[int](), set[int](), set[int]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports |= _lines(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docstrings |= _lines(node)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    return Weight(1, len(source.splitlines()), len(code - docstrings - imports), len(docstrings), len(imports))


def _lines(node: ast.stmt) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def imports_of(source: str) -> Counter[str]:
    """Return how often a text imports from each package of masis."""
    modules = Counter[str]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "masis":
            modules.update(f"masis.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            modules[node.module or ""] += 1
        elif isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
    found = Counter[str]()
    for module, times in modules.items():
        if module.startswith("masis."):
            found[module.split(".")[1]] += times
    return found


def sources(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield every Python file of the repository, by its path in it, with its text."""
    folders = [root / name for name in ("masis", *BESIDE)]
    for file in sorted([*root.glob("*.py"), *(file for folder in folders for file in folder.rglob("*.py"))]):
        yield file.relative_to(root), file.read_text(encoding="utf-8")


def report(root: Path, slowest: int = 20) -> Iterator[str]:
    """Yield the lines of the report."""
    product: dict[str, Weight] = {}
    beside: dict[str, Weight] = {}
    imports: dict[str, Counter[str]] = {}
    for file, text in sources(root):
        if file.parts[0] == "masis":
            name = Path(file.parts[1]).stem
            product[name] = product.get(name, Weight()).plus(weight_of(text))
            imports[name] = imports.get(name, Counter()) + imports_of(text)
        else:
            beside[file.parts[0]] = beside.get(file.parts[0], Weight()).plus(weight_of(text))
    whole = Weight()
    for weight in product.values():
        whole = whole.plus(weight)
    row = "{:<14}{:>7,}{:>10,}{:>10,}{:>12,}{:>10,}".format
    yield "{:<14}{:>7}{:>10}{:>10}{:>12}{:>10}".format("package", *Weight._fields)
    yield from (row(name, *product[name]) for name in sorted(product, key=lambda name: -product[name].lines))
    yield row("masis in all", *whole)
    yield from (row(name, *weight) for name, weight in beside.items())
    yield from _between(imports)
    yield from _slowest(root / DURATIONS, slowest)


def _between(imports: Mapping[str, Counter[str]]) -> Iterator[str]:
    yield from ("", "imports of one package by another")
    for name in sorted(imports):
        others = [f"{other} {times}" for other, times in imports[name].most_common() if other != name]
        if others:
            yield f"{name:<14}{', '.join(others)}"


def _slowest(durations: Path, number: int) -> Iterator[str]:
    yield ""
    if not durations.exists():
        yield f"No times of tests: {DURATIONS} is left by `make test`, and not there."
        return
    timed = [json.loads(line) for line in durations.read_text(encoding="utf-8").splitlines()]
    yield f"the slowest {min(number, len(timed))} of {len(timed):,} tests, in seconds"
    for each in sorted(timed, key=lambda each: -each["seconds"])[:number]:
        yield f"{each['seconds']:>8.1f}  {each['test']}"


def main(arguments: list[str]) -> int:
    """Print the report."""
    parser = argparse.ArgumentParser(description="Show how heavy the project is.")
    parser.add_argument("--slowest", type=int, default=20, metavar="N", help="how many tests to name (20)")
    print("\n".join(report(ROOT, parser.parse_args(arguments).slowest)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
