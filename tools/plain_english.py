"""List names and words that a reader would stumble over; exit code 1 if there are any.

    python tools/plain_english.py

The rules are those of CONTRIBUTING.md ("How things read"). The tool reports:

names        functions and methods whose name is a bare participle or a third-person verb ("placed",
             "leads"); properties can be adjectives
variables    variables and parameters whose name says nothing of what they hold ("each")
private      two different functions of the package that share a private name
classes      two classes with the same name
limits       docstrings of limits that begin with "The most" instead of "Maximum"
words        words that have a plainer equivalent, in code, comments, docstrings, scripts and messages

Tests, tools and benchmarks are checked for the names of their functions and variables.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

IRREGULAR_PARTICIPLES = frozenset(
    """
    begun bent bought brought caught chosen dealt done drawn driven eaten fallen fed felt forgotten
    found gone grown heard held hidden kept known laid led left lent lost made meant met mistaken
    paid proven said seen sent sewn shaken shot shown sold sought spent spoken stolen struck sunk sworn
    taken taught thought thrown told torn understood won worn woven written
    """.split()
)

THIRD_PERSON_VERBS = frozenset(
    """
    agrees asks begins belongs carries comes covers counts denies differs ends enters fails fits
    follows gives goes holds keeps knows leads means needs passes points puts reads says shows
    speaks stands starts takes tells waits wants writes
    """.split()
)

ALLOWED_NAMES = {
    "audited": "public decorator of masis.pipeline",
    "planted": "a group of commands, named as it is typed",
    "grounded": "public fixture of the pytest plug-in",
    "speed": "a noun",
    "pubmed": "a noun",
    "embed": "a verb",
    "feed": "a verb",
    "seed": "a noun",
    "need": "a verb",
}
"""Names that only look like participles, or that other people's programs call."""

PLAINER_WORDS = {
    "cure": "hint",
    "whence": "source",
    "heed": "respect",
    "whosoever": "anyone who",
    "accuse": "flag",
    "accuses": "flags",
    "accused": "flagged",
    "accusation": "flag",
    "accusations": "flags",
    "objection": "issue",
    "objections": "issues",
    "from which on": "the minimum",
}
"""Words to avoid, and their plainer equivalents."""

WORDS_ARE_DATA = ("masis/bench/",)
"""Folders in which such a word is a stored name: a metric in published results."""

LIMITS_TO_REWORD = ("masis/screening/",)
"""Folders whose docstrings of limits haven't been reworded yet."""

OTHER_FOLDERS = ("tests", "tools", "benchmarks")
"""Folders outside the package. Their functions and variables are checked as well."""

VAGUE_VARIABLES = frozenset({"each"})
"""Names of variables that don't say what they hold. Name the thing: ``for claim in claims``."""

PROPERTY_DECORATORS = frozenset({"property", "cached_property"})


class Candidate(NamedTuple):
    """A place to reword, and the problem with it."""

    place: str
    problem: str


class Definition(NamedTuple):
    """A function or class of the package. ``owner`` is the class that a method belongs to."""

    file: str
    line: int
    name: str
    owner: str
    is_class: bool
    is_property: bool


def definitions(file: str, source: str) -> Iterator[Definition]:
    """Yield the functions, methods and classes of a file, but not functions inside functions."""

    def walk(body: list[ast.stmt], owner: str) -> Iterator[Definition]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield Definition(file, node.lineno, node.name, owner, True, False)
                yield from walk(node.body, node.name)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                decorators = {
                    ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list
                }
                is_property = bool(decorators & PROPERTY_DECORATORS)
                yield Definition(file, node.lineno, node.name, owner, False, is_property)
            elif isinstance(node, ast.If | ast.Try):
                yield from walk(node.body, owner)

    return walk(ast.parse(source).body, "")


def is_bare_form(name: str) -> bool:
    """Return whether a function's name is only a participle or a third-person verb."""
    word = name.strip("_")
    if not word.isalpha() or word in ALLOWED_NAMES:
        return False
    return word.endswith("ed") or word in IRREGULAR_PARTICIPLES or word in THIRD_PERSON_VERBS


def name_candidates(all_definitions: list[Definition]) -> Iterator[Candidate]:
    """Yield functions with bare names, and duplicate names."""
    private, classes = (
        defaultdict[str, list[Definition]](list),
        defaultdict[str, list[Definition]](list),
    )
    for definition in all_definitions:
        place = f"{definition.file}:{definition.line}"
        if definition.is_class:
            classes[definition.name].append(definition)
        elif not definition.is_property and is_bare_form(definition.name):
            yield Candidate(place, f"{definition.name} is no verb phrase")
        is_private = definition.name.startswith("_") and not definition.name.startswith("__")
        if is_private and not definition.owner and not definition.is_class:
            private[definition.name].append(definition)
    for kind, places_by_name in (("function", private), ("class", classes)):
        for name, places in places_by_name.items():
            for repeated in places[1:]:
                first = f"{places[0].file}:{places[0].line}"
                yield Candidate(
                    f"{repeated.file}:{repeated.line}", f"{name} is also a {kind} at {first}"
                )


def variable_candidates(file: str, source: str) -> Iterator[Candidate]:
    """Yield the places that bind a variable or a parameter with a vague name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.arg):
            name = node.arg
        else:
            continue
        if name in VAGUE_VARIABLES:
            yield Candidate(f"{file}:{node.lineno}", f"{name} doesn't say what it holds")


def helper_candidates(file: str, source: str) -> Iterator[Candidate]:
    """Yield the functions of a test or tool with a bare name, also those inside other functions.

    Fixtures and properties can be nouns and adjectives.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_bare_form(node.name):
            decorators = " ".join(ast.unparse(decorator) for decorator in node.decorator_list)
            if "fixture" not in decorators and "property" not in decorators:
                yield Candidate(f"{file}:{node.lineno}", f"{node.name} is no verb phrase")


def limit_candidates(file: str, source: str) -> Iterator[Candidate]:
    """Yield the docstrings of limits that begin with "The most" or "The fewest" of something."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = str(node.value.value)
            if match := re.match(r"The (most|fewest|least) (?:\w+s|share)\b", text):
                better = "Maximum" if match[1] == "most" else "Minimum"
                yield Candidate(f"{file}:{node.lineno}", f"{match[0]}: begin with {better}")


def word_candidates(file: str, text: str) -> Iterator[Candidate]:
    """Yield the lines of a text that have a word to avoid."""
    pattern = re.compile(rf"(?<!\w)({'|'.join(PLAINER_WORDS)})(?!\w)", re.IGNORECASE)
    for number, line in enumerate(text.splitlines(), 1):
        for match in pattern.finditer(line):
            better = PLAINER_WORDS[match[1].lower()]
            yield Candidate(f"{file}:{number}", f"{match[1]}: say {better}")


def candidates(root: Path) -> Iterator[Candidate]:
    """Yield all places to reword in the package, its tests, tools and benchmarks."""
    all_definitions: list[Definition] = []
    for path in sorted((root / "masis").rglob("*")):
        if path.suffix in (".py", ".js", ".css", ".sql"):
            text, file = path.read_text(encoding="utf-8"), str(path.relative_to(root))
            if not file.startswith(WORDS_ARE_DATA):
                yield from word_candidates(file, text)
            if path.suffix == ".py":
                all_definitions += definitions(file, text)
                yield from variable_candidates(file, text)
                if not file.startswith(LIMITS_TO_REWORD):
                    yield from limit_candidates(file, text)
    yield from name_candidates(all_definitions)
    for folder in OTHER_FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            text, file = path.read_text(encoding="utf-8"), str(path.relative_to(root))
            yield from variable_candidates(file, text)
            yield from helper_candidates(file, text)


def main() -> int:
    """Print the candidates."""
    all_candidates = list(candidates(ROOT))
    for candidate in all_candidates:
        print(f"{candidate.place}: {candidate.problem}")
    return 1 if all_candidates else 0


if __name__ == "__main__":
    sys.exit(main())
