"""Imports point one way, checked in the source with ``ast``, including lazy imports."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from masis.store import Store
from masis.store.audits.runs import Runs

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "masis"

LAYERS = (
    {"extensions"},  # the hooks of screening and the integrations
    {"version", "errors", "schema"},
    {"settings"},
    {"observers"},  # observers of an audit, and the log context; they import no other layer
    {"audit"},  # the audit itself, independent of the models
    {"views"},  # wording and markup of audit results
    {"offline", "llm"},  # two implementations of the roles, independent of each other
    {"screening"},
    {"api"},  # builds the roles and runs the loop for masis.run_audit, without a store
    {"store"},
    {"datasets", "trust", "bench"},
    {"services"},  # the use cases: every page, command and integration goes through them
    {"pipeline"},  # the wrapper for programs that answer questions
    {"masis"},  # the public names
    {"integrations"},
    {"server"},  # the JSON API and ingestion: the use cases over HTTP
    {"ui", "cli"},
    {"app", "pages", "__main__"},
)
ROOMS = ("screening", "integrations")
"""The folders that extend the core through ``masis.extensions``. Their parts have the layers of
the core, which imports nothing from them.
"""

PARTS_OF_ROOMS = {
    "extension": "extensions",
    "views": "views",
    "store": "store",
    "readers": "datasets",
    "writers": "datasets",
    "services": "services",
    "cli": "cli",
    "ui": "ui",
    "pages": "pages",
}
"""The layer of each part of a room. Its other modules have the layer with the room's own name."""

RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

SIDEWAYS = {("schema", "errors"), ("cli", "ui")}
"""Allowed imports within one layer: the command line starts the server."""

ONLY_IN = {
    "streamlit": {"ui", "app", "pages"},
    "altair": {"views", "ui", "app", "pages"},
    "sqlite3": {"store"},
    "sqlite_utils": {"store"},
    "openai": {"llm"},
    "anthropic": {"llm"},
    "mcp": {"integrations"},
    "dspy": {"integrations"},
    "langgraph": {"integrations"},
    "langchain_core": {"integrations"},
    "llama_index": {"integrations"},
    "baml_py": {"integrations"},
    "opentelemetry": {"integrations", "server"},
    "ray": {"integrations"},
}


class Import(NamedTuple):
    """One import statement."""

    file: Path
    line: int
    module: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line} imports {self.module}"


def sources() -> list[Path]:
    return sorted([*PACKAGE.rglob("*.py"), ROOT / "app.py", *(ROOT / "pages").glob("*.py")])


def module_name(file: Path) -> str:
    parts = list(file.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part(module: str) -> str:
    """Return the layer that a module belongs to: ``masis.store.audits.cases`` -> ``store``,
    ``masis.screening.store.corpora`` -> ``store``.
    """
    names = module.split(".")
    if room(module) and len(names) > 2:
        return PARTS_OF_ROOMS.get(names[2], names[1])
    return names[1] if names[0] == "masis" and len(names) > 1 else names[0]


def room(module: str) -> str:
    """Return the room that a module belongs to, or "" for the core."""
    names = module.split(".")
    return names[1] if names[0] == "masis" and len(names) > 1 and names[1] in ROOMS else ""


def imports(file: Path) -> Iterator[Import]:
    package = module_name(file).split(".")
    if file.name != "__init__.py":
        package = package[:-1]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(file, node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                submodule = f"{module}.{alias.name}"
                yield Import(file, node.lineno, submodule if is_module(submodule) else module)
        elif isinstance(node, ast.Call) and (name := imported_by_name(node)):
            yield Import(file, node.lineno, name)


def imported_by_name(call: ast.Call) -> str:
    """Return the module of ``importlib.import_module("masis...")``, which counts as an import, or
    "" for other calls.
    """
    if getattr(call.func, "attr", getattr(call.func, "id", "")) != "import_module" or not call.args:
        return ""
    return str(call.args[0].value) if isinstance(call.args[0], ast.Constant) else ""


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


@cache
def all_imports() -> list[Import]:
    return [imported for file in sources() for imported in imports(file)]


def test_every_part_of_the_package_has_a_layer() -> None:
    parts = {part(module_name(file)) for file in sources()}
    assert parts <= set(RANK), f"say where {sorted(parts - set(RANK))} stand"


def test_imports_point_one_way() -> None:
    wrong = []
    for imported in all_imports():
        here, there = part(module_name(imported.file)), part(imported.module)
        if imported.module.split(".")[0] not in ("masis", "app", "pages") or here == there:
            continue
        if RANK[there] > RANK[here] or (
            RANK[there] == RANK[here] and (here, there) not in SIDEWAYS
        ):
            wrong.append(str(imported))
    assert not wrong, "\n".join(wrong)


FOR_TYPE_CHECKERS = {("masis", "masis.screening.critic")}
"""Imports of the core that aren't run: the public names of ``masis``."""


def test_the_core_imports_nothing_from_the_rooms_except_through_hooks() -> None:
    wrong = [
        str(found)
        for found in all_imports()
        if room(found.module)
        and room(found.module) != room(module_name(found.file))
        and (room(module_name(found.file)), room(found.module)) != ("integrations", "screening")
        and (module_name(found.file), found.module) not in FOR_TYPE_CHECKERS
    ]
    assert not wrong, "add a hook to masis/extensions.py:\n" + "\n".join(wrong)


def test_modules_have_no_circular_imports() -> None:
    # A package's __init__ and its modules always import each other, so only cycles between module
    # bodies count.
    graph: dict[str, set[str]] = {module_name(file): set() for file in sources()}
    for imported in all_imports():
        if imported.module in graph and imported.module != module_name(imported.file):
            graph[module_name(imported.file)].add(imported.module)
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        if module in path:
            pytest.fail("circle: " + " -> ".join([*path[path.index(module) :], module]))
        if module in done:
            return
        for target in sorted(graph[module]):
            visit(target, (*path, module))
        done.add(module)

    for module in graph:
        visit(module, ())


def test_libraries_are_imported_only_where_allowed() -> None:
    wrong = [
        str(imported)
        for imported in all_imports()
        if (allowed := ONLY_IN.get(imported.module.split(".")[0]))
        and part(module_name(imported.file)) not in allowed
    ]
    assert not wrong, "\n".join(wrong)


def test_only_settings_reads_the_environment() -> None:
    wrong = []
    for file in sources():
        if file == PACKAGE / "settings" / "environment.py":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            name = node.attr if isinstance(node, ast.Attribute) else ""
            owner = (
                node.value.id
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
                else ""
            )
            if owner == "os" and name in ("environ", "getenv", "environb", "putenv"):
                wrong.append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert not wrong, "\n".join(wrong)


ABOVE_SERVICES = {"pipeline", "integrations", "ui", "cli", "app", "pages"}


READS = {
    "cases": {"get", "iterate"},
    "datasets": {"count_lost", "get", "list_all"},
    "decisions": {"check_subjects", "count_simulated", "head", "reviewers", "verify"},
    "evidence": {"cases_with", "ids_beginning", "newest_ids", "with_words"},
    "executions": {"iterate", "page"},
    "purges": {"history", "removals"},
    "retention": {"plan"},
    "preference_log": {"check_subjects", "verify"},
    "screening_log": {"check_subjects", "verify"},
    "systems": {"question_records"},
    "team": {
        *("count_cases", "history", "in_force", "own_work_among", "queue_history", "queues"),
        "views",
    },
}
"""Reads of the store that need no service, because they reveal no decisions or audit results.

Data with restricted access (a summary, a run, a log entry) is read through a service, which checks
the permission.
"""


WRITES_OF_RUNS = {
    name
    for name, method in inspect.getmembers(Runs, inspect.isfunction)
    if not name.startswith("_")
    and "transaction(" in inspect.getsource(method)
    and name != "mark_lost"
}
"""The methods of ``Workbench.runs`` that write, except ``mark_lost``, which records no decision."""


def reaching_past_reads(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and expression of every use of a store that isn't a call of one of ``READS``."""
    tree = ast.parse(source)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and node.attr in WRITES_OF_RUNS
            and ast.unparse(node.value).endswith(".runs")
        ):
            yield node.lineno, ast.unparse(node)
        if isinstance(node, ast.Attribute) and node.attr in ("store", "_store"):
            part = parents[node]
            method = parents.get(part)
            named = isinstance(part, ast.Attribute) and isinstance(method, ast.Attribute)
            if node.attr == "_store" or not named or method.attr not in READS.get(part.attr, ()):
                yield node.lineno, ast.unparse(method if named else node)


def test_code_above_the_services_writes_through_them_and_uses_only_shared_reads() -> None:
    wrong = [
        str(imported)
        for imported in all_imports()
        if part(imported.module) == "store" and part(module_name(imported.file)) in ABOVE_SERVICES
    ]
    for file in sources():
        if part(module_name(file)) in ABOVE_SERVICES:
            found = reaching_past_reads(file.read_text(encoding="utf-8"))
            wrong += [f"{file.relative_to(ROOT)}:{line} uses {what}" for line, what in found]
    assert not wrong, "say what you need in masis/services:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    "source",
    [
        "desk.store.cases.add(case)",
        "store = desk.store",
        "f(desk.store.team)",
        "desk.runs.finish(run)",
        "desk.store.team.put_in_force(me, rubric)",
    ],
)
def test_writing_or_passing_on_the_store_is_detected(source: str) -> None:
    assert list(reaching_past_reads(source))


def test_the_shared_reads_exist_and_write_nothing(tmp_path: Path) -> None:
    with Store.open(tmp_path / "reads.db") as store:
        for name, methods in READS.items():
            for method in methods:
                source = inspect.getsource(getattr(type(getattr(store, name)), method))
                assert "transaction(" not in source, f"{name}.{method} writes"


WRITES_CSV = {
    "masis/datasets/exports/export.py",
    "masis/datasets/writers/lines.py",
    "masis/datasets/writers/metrics.py",
}
"""The modules that write CSV. Each escapes cells that a spreadsheet would run as formulas."""


def test_csv_is_written_only_where_formulas_are_escaped() -> None:
    writes = re.compile(r"\bcsv\.(?:writer|DictWriter)\(|\.to_(?:csv|excel)\(")
    found = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "masis").rglob("*.py")
        if writes.search(path.read_text(encoding="utf-8"))
    }
    assert found == WRITES_CSV
