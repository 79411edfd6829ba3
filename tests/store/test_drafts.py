"""Drafts: every field as it was last typed, for each person and subject apart."""

from __future__ import annotations

from pathlib import Path

from masis.store import Store
from masis.store.reviews.drafts import NOBODY_YET


def test_a_field_is_there_after_the_store_is_opened_again(path: Path) -> None:
    with Store.open(path) as store:
        store.drafts.save("Ada", "case:1", "note", "half a sen")
        store.drafts.save("Ada", "case:1", "note", "half a sentence")
        store.drafts.save("Ada", "case:1", "labels", {"0-5": ["supported", None]})
    with Store.open(path) as store:
        assert store.drafts.load("Ada", "case:1") == {"note": "half a sentence", "labels": {"0-5": ["supported", None]}}


def test_people_and_subjects_do_not_mix(store: Store) -> None:
    store.drafts.save("Ada", "case:1", "note", "hers")
    store.drafts.save("Bo", "case:1", "note", "his")
    store.drafts.save("Ada", "case:2", "note", "another")
    assert store.drafts.load("Bo", "case:1") == {"note": "his"}
    store.drafts.clear("Ada", "case:1")
    assert store.drafts.load("Ada", "case:1") == {}
    assert store.drafts.load("Bo", "case:1") == {"note": "his"}
    assert store.drafts.load("Ada", "case:2") == {"note": "another"}


def test_a_draft_tells_when_it_was_saved_and_the_same_text_again_is_no_new_draft(store: Store) -> None:
    assert store.drafts.get("Ada", "case:1").saved_at is None
    store.drafts.save("Ada", "case:1", "note", "a")
    first = store.drafts.get("Ada", "case:1").saved_at
    store.drafts.save("Ada", "case:1", "note", "a")
    assert store.drafts.get("Ada", "case:1").saved_at == first
    store.drafts.save("Ada", "case:1", "note", "b")
    assert str(store.drafts.get("Ada", "case:1").saved_at) > str(first)


def test_single_fields_can_go(store: Store) -> None:
    store.drafts.save_all("Ada", "case:1", {"note": "a", "reason": "other", "verdict": "reject"})
    store.drafts.clear("Ada", "case:1", "note", "reason")
    assert store.drafts.load("Ada", "case:1") == {"verdict": "reject"}


def test_what_was_typed_before_a_name_was_given_goes_to_that_name(store: Store) -> None:
    store.drafts.save(NOBODY_YET, "case:1", "note", "typed first")
    store.drafts.save(NOBODY_YET, "case:2", "note", "must not replace")
    store.drafts.save("Ada", "case:2", "note", "hers")
    store.drafts.hand_over(NOBODY_YET, "Ada")
    assert store.drafts.load("Ada", "case:1") == {"note": "typed first"}
    assert store.drafts.load("Ada", "case:2") == {"note": "hers"}
    assert store.drafts.load(NOBODY_YET, "case:1") == {}


def test_what_was_typed_after_an_older_draft_of_that_name_is_not_taken_away(store: Store) -> None:
    store.drafts.save_all("Ada", "case:1", {"note": "last week's", "other": "older", "reason": "other"})
    store.drafts.save_all(NOBODY_YET, "case:1", {"note": "typed just now", "other": ""})
    store.drafts.hand_over(NOBODY_YET, "Ada")
    assert store.drafts.load("Ada", "case:1") == {"note": "typed just now", "other": "older", "reason": "other"}


def test_any_text_can_be_kept(store: Store) -> None:
    nasty = "'; DROP TABLE drafts; -- \x00 \ud800 \u202e <script> 🜁" + "x" * 100_000
    store.drafts.save("Ada'; --", "case:\x01", "note", nasty)
    assert store.drafts.load("Ada'; --", "case:\x01") == {"note": nasty}
