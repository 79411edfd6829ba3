"""Show how much a reader of the project must keep in mind, package by package.

python tools/weight.py [--slowest 20]

Lines aren't counted as a cost, because squeezing them doesn't reduce the number of tokens. The
report lists, for each package:

tokens      Python tokens without comments, docstrings and layout
types       classes of every kind, named tuples and records included
one-use     private functions and methods whose name occurs once besides their definition
width       mean number of characters of a line that isn't blank
longest     characters of the longest line
comments    comments per 1,000 lines

Then it lists imports between packages, and the slowest tests of the last `make test`, which writes
their times to ``.run/durations.jsonl``.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
DURATIONS = Path(".run") / "durations.jsonl"
OTHER_FOLDERS = ("pages", "tests", "tools", "benchmarks", "examples")
"""Folders that are counted as one package each, besides those of masis/."""

LAYOUT_TOKENS = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)


class Weight(NamedTuple):
    """The figures of a group of files; the module's docstring explains each."""

    files: int
    tokens: int
    types: int
    one_use: int
    width: float
    longest: int
    comments: float


class FileFigures(NamedTuple):
    """What one file contributes to the figures of its package.

    ``names`` counts every name token, so that uses of a private function in other files are seen.
    """

    tokens: int
    types: int
    comments: int
    line_lengths: tuple[int, ...]
    private_functions: tuple[str, ...]
    names: Counter[str]


def read_file(source: str) -> FileFigures:
    """Return the figures of a file with this text."""
    tree = ast.parse(source)
    docstring_lines = set[int]()
    private_functions: list[str] = []
    types = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            types += 1
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.startswith("_") and not node.name.startswith("__"):
                private_functions.append(node.name)
        elif (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            docstring_lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    tokens = comments = 0
    names = Counter[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        comments += token.type == tokenize.COMMENT
        is_docstring = token.type == tokenize.STRING and token.start[0] in docstring_lines
        tokens += token.type not in LAYOUT_TOKENS and not is_docstring
        if token.type == tokenize.NAME:
            names[token.string] += 1
    lengths = tuple(len(line) for line in source.splitlines())
    return FileFigures(tokens, types, comments, lengths, tuple(private_functions), names)


def combine(files: Sequence[FileFigures], names: Counter[str]) -> Weight:
    """Return the figures of several files.

    Args:
        files: The files of a package.
        names: How often each name occurs in the whole product. A private function is used once if
            its name occurs twice: in its definition and in its use.

    """
    filled = [length for file in files for length in file.line_lengths if length]
    lines = sum(len(file.line_lengths) for file in files)
    return Weight(
        files=len(files),
        tokens=sum(file.tokens for file in files),
        types=sum(file.types for file in files),
        one_use=sum(names[name] == 2 for file in files for name in file.private_functions),
        width=sum(filled) / max(1, len(filled)),
        longest=max(filled, default=0),
        comments=1000 * sum(file.comments for file in files) / max(1, lines),
    )


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
    import_times = Counter[str]()
    for module, times in modules.items():
        if module.startswith("masis."):
            import_times[module.split(".")[1]] += times
    return import_times


def sources(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield every Python file of the repository, by its path in it, with its text."""
    folders = [root / name for name in ("masis", *OTHER_FOLDERS)]
    nested = (file for folder in folders for file in folder.rglob("*.py"))
    for file in sorted([*root.glob("*.py"), *nested]):
        yield file.relative_to(root), file.read_text(encoding="utf-8")


def report(root: Path, slowest: int = 20) -> Iterator[str]:
    """Yield the lines of the report."""
    packages: dict[str, list[FileFigures]] = {}
    others: dict[str, list[FileFigures]] = {}
    imports: dict[str, Counter[str]] = {}
    for file, text in sources(root):
        if file.parts[0] == "masis":
            name = Path(file.parts[1]).stem
            packages.setdefault(name, []).append(read_file(text))
            imports[name] = imports.get(name, Counter()) + imports_of(text)
        else:
            others.setdefault(file.parts[0], []).append(read_file(text))
    product = [file for files in packages.values() for file in files]
    names = sum((file.names for file in product), Counter[str]())
    by_tokens = sorted(packages, key=lambda name: -sum(file.tokens for file in packages[name]))
    yield "{:<16}{:>6}{:>10}{:>7}{:>9}{:>7}{:>9}{:>10}".format("package", *Weight._fields)
    row = "{:<16}{:>6,}{:>10,}{:>7,}{:>9,}{:>7.1f}{:>9,}{:>10.0f}".format
    yield from (row(name, *combine(packages[name], names)) for name in by_tokens)
    yield row("masis in all", *combine(product, names))
    optional = ("screening", "integrations")
    core = [file for name in by_tokens if name not in optional for file in packages[name]]
    yield row("core", *combine(core, names))
    yield f"(core is masis without {' and '.join(optional)})"
    for name, files in others.items():
        own_names = sum((file.names for file in files), Counter[str]())
        yield row(name, *combine(files, own_names))
    yield from _between(imports)
    yield from _slowest(root / DURATIONS, slowest)


def _between(imports: Mapping[str, Counter[str]]) -> Iterator[str]:
    yield from ("", "imports of one package by another")
    for name in sorted(imports):
        others = [
            f"{other} {times}" for other, times in imports[name].most_common() if other != name
        ]
        if others:
            yield f"{name:<14}{', '.join(others)}"


def _slowest(durations: Path, number: int) -> Iterator[str]:
    yield ""
    if not durations.exists():
        yield f"There are no test times, because `make test` hasn't written {DURATIONS}."
        return
    timed = [json.loads(line) for line in durations.read_text(encoding="utf-8").splitlines()]
    yield f"the slowest {min(number, len(timed))} of {len(timed):,} tests, in seconds"
    for test in sorted(timed, key=lambda test: -test["seconds"])[:number]:
        yield f"{test['seconds']:>8.1f}  {test['test']}"


def main(arguments: list[str]) -> int:
    """Print the report."""
    parser = argparse.ArgumentParser(description="Show how much a reader must keep in mind.")
    parser.add_argument(
        "--slowest", type=int, default=20, metavar="N", help="how many tests to list (20)"
    )
    print("\n".join(report(ROOT, parser.parse_args(arguments).slowest)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
