"""Every rule that is said to be here is shown by a test, and the page says what is true."""

from __future__ import annotations

from tools import conformance


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


def test_the_code_named_for_a_rule_exists() -> None:
    for rule in conformance.rules():
        for place in filter(None, (part.strip() for part in rule.code.split(","))):
            file, _, name = place.partition(":")
            assert (conformance.ROOT / file).exists(), f"{rule.id}: {file}"
            if name:
                assert name.split(".")[-1] in (conformance.ROOT / file).read_text(encoding="utf-8"), (
                    f"{rule.id}: {name}"
                )
