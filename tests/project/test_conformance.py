"""Every rule that is said to be here is shown by a test, and the page says what is true."""

from __future__ import annotations

import ast

from tools import conformance, constants


def test_the_page_is_current() -> None:
    current = conformance.PAGE.read_text(encoding="utf-8")
    assert current == conformance.page(), "run python tools/conformance.py"


def test_every_rule_that_is_here_has_a_test() -> None:
    tests = conformance.marked_tests()
    assert [rule.id for rule in conformance.rules() if rule.state == "here" and not tests.get(rule.id)] == []


def test_every_mark_names_a_rule() -> None:
    known = {rule.id for rule in conformance.rules()}
    assert {mark: tests for mark, tests in conformance.marked_tests().items() if mark not in known} == {}


def test_every_rule_has_an_id_of_its_own() -> None:
    ids = [rule.id for rule in conformance.rules()]
    assert len(ids) == len(set(ids))


def test_every_constant_stands_where_its_mutation_looks_for_it() -> None:
    assert constants.misfits(constants.constants()) == []


def test_the_code_named_for_a_rule_is_a_file_and_what_it_defines() -> None:
    for rule in conformance.rules():
        for place in filter(None, (part.strip() for part in rule.code.split(","))):
            file, _, name = place.partition(":")
            path = conformance.ROOT / file
            assert path.is_file(), f"{rule.id}: {file} is no file: name the one where a reader should begin"
            if name:
                assert name in _defined(ast.parse(path.read_text(encoding="utf-8"))), f"{rule.id}: {place}"


def _defined(body: ast.AST, within: str = "") -> set[str]:
    """Return what a module defines: classes, functions and names, members also as ``Class.member``."""
    names: set[str] = set()
    for node in ast.iter_child_nodes(body):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names |= {node.name, f"{within}{node.name}"}
            if isinstance(node, ast.ClassDef):
                names |= _defined(node, f"{node.name}.")
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            assigned = [target.id for target in targets if isinstance(target, ast.Name)]
            names |= {*assigned, *(f"{within}{name}" for name in assigned)}
    return names
