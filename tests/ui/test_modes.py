"""The page of failure modes: reading and coding rows, groups, the codebook, and counts."""

from __future__ import annotations

import pytest

from masis.schema.codebook import Codebook
from masis.schema.team import QueuePolicy
from masis.schema.wording import shorten
from masis.services import Workbench
from masis.ui.components.linked_table import LinkedRow
from masis.ui.modes import book, coding, counts, groups
from masis.ui.modes.counts import queue_parameters
from tests.modes import ADA, BEN, WRONG_DATE, WRONG_UNIT, find_observations, reject
from tests.ui.conftest import AUDITED, open_page, press, texts

SIGNED_IN = {"reviewer-name": "Ada"}


def test_a_row_is_coded_and_the_code_is_undone(audited_workbench: Workbench) -> None:
    audited_workbench.modes.add_mode(ADA, WRONG_DATE)
    reject(audited_workbench, AUDITED[0], note="The year is invented.")
    page = open_page("modes", SIGNED_IN, kind="note")
    (box,) = page.checkbox
    assert box.label.replace("\\", "") == "The year is invented."
    box.check().run()
    page.selectbox(key="modes-code").set_value("wrong-date").run()
    page = press(page, "modes-apply")
    assert "Coded 1 row in 1 case." in texts(page).replace("\\", "")
    assert page.selectbox(key="modes-code").value is None
    assert not page.checkbox[0].value
    (row,) = find_observations(audited_workbench, kinds=("note",))
    assert row.codes == ("wrong-date",)
    page = press(page, "modes-undo")
    press(page, "batch-undo")
    [batch] = audited_workbench.batches.newest(ADA)
    assert batch.state in ("undoing", "undone")
    assert "Coded 1 row" not in texts(page.run())


def test_the_ticked_ones_of_the_nearest_rows_are_coded_with_the_chosen_one(
    audited_workbench: Workbench,
) -> None:
    for case_id in AUDITED[:2]:
        reject(audited_workbench, case_id, note="The year is invented.")
    reject(audited_workbench, AUDITED[2], note="The unit of the dose is wrong.")
    audited_workbench.modes.add_mode(ADA, WRONG_DATE)
    page = open_page("modes", SIGNED_IN, kind="note", q="invented")
    page.checkbox[0].check().run()
    page.selectbox(key="modes-code").set_value("wrong-date").run()
    page = press(page, "modes-similar")
    nearest = [box for box in page.checkbox if str(box.key).startswith("modes-similar-")]
    assert nearest[0].label.replace("\\", "") == "The year is invented."
    assert page.button(key="modes-apply-similar").disabled
    nearest[0].check().run()
    assert page.button(key="modes-apply-similar").label == "Apply to 2 rows"
    press(page, "modes-apply-similar")
    coded = find_observations(audited_workbench, codes=("wrong-date",))
    assert [row.text for row in coded] == ["The year is invented."] * 2


def test_only_the_ticked_rows_of_a_group_get_its_mode(audited_workbench: Workbench) -> None:
    for case_id in AUDITED[:4]:
        reject(audited_workbench, case_id, note="The dose is wrong.")
    group = next(
        group
        for group in audited_workbench.modes.groups(ADA).groups
        if audited_workbench.modes.search(ADA, group.members).rows[0].kind == "note"
    )
    page = open_page("modes", SIGNED_IN, view="groups", group=group.id)
    assert len(page.checkbox) == group.observations
    assert all(box.value for box in page.checkbox)
    press(page, "modes-untick-all")
    assert page.button(key="modes-confirm").disabled
    for box in page.checkbox[:2]:
        box.check().run()
    assert f"2 of {group.observations} rows ticked" in texts(page)
    page.text_input(key=f"modes-group-name-{group.id}").set_value("Wrong dose").run()
    press(page, "modes-confirm")
    assert len(find_observations(audited_workbench, codes=("wrong-dose",))) == 2
    assert audited_workbench.modes.groups(ADA).observations >= 2  # the others are proposed again


def test_a_confirmed_group_becomes_a_mode_whose_count_leads_to_its_cases(
    audited_workbench: Workbench,
) -> None:
    (group, *_) = audited_workbench.modes.groups(ADA).groups
    page = open_page("modes", SIGNED_IN, view="groups", group=group.id)
    page.text_input(key=f"modes-group-name-{group.id}").set_value("Invented source")
    page = press(page, "modes-confirm")
    assert f"Coded {group.observations} row" in texts(page).replace("\\", "")
    (count,) = audited_workbench.modes.count_modes(ADA)
    assert count.cases == group.cases
    assert queue_parameters(count.case_filter)["mode"] == "invented-source"
    assert "Nothing to count yet" not in texts(open_page("modes", SIGNED_IN, view="counts"))


def test_a_group_is_dismissed_listed_with_its_person_and_taken_back(
    audited_workbench: Workbench,
) -> None:
    (group, *_) = audited_workbench.modes.groups(ADA).groups
    page = press(open_page("modes", SIGNED_IN, view="groups", group=group.id), "modes-dismiss")
    shown = texts(page).replace("\\", "")
    assert "The group was dismissed." in shown
    again = texts(press(page, "modes-regroup")).replace("\\", "")
    assert "Groups proposed again." in again
    assert "The group was dismissed." not in again
    assert "dismissed by Ada" in shown
    total = len(find_observations(audited_workbench, faults_only=True))
    left = total - group.observations
    assert f"{total} faults without a code, of which {group.observations} dismissed." in shown
    assert f"The other {left} are in" in shown
    assert group.id not in [other.id for other in audited_workbench.modes.groups(ADA).groups]
    [dismissed] = audited_workbench.modes.list_dismissed(ADA)
    page = press(open_page("modes", SIGNED_IN, view="groups"), f"modes-restore-{dismissed.id}")
    assert "Dismissed groups" not in texts(page)
    assert group.id in [other.id for other in audited_workbench.modes.groups(ADA).groups]


def test_a_mode_is_defined_nested_and_merged(audited_workbench: Workbench) -> None:
    press(open_page("modes", SIGNED_IN, view="book"), "modes-start-rag")
    audited_workbench.modes.add_mode(ADA, WRONG_DATE)
    book = audited_workbench.modes.codebook(ADA)
    top = book.children(None)[0].code
    page = open_page("modes", SIGNED_IN, view="book", code="wrong-date")
    prefix = f"modes-edit-wrong-date-{book.version}"
    page.text_area(key=f"{prefix}-counter_example").set_value("A date of another event.")
    page.selectbox(key=f"{prefix}-parent").set_value(top)
    press(page, "Save mode")
    mode = audited_workbench.modes.codebook(ADA).find("wrong-date")
    assert mode is not None
    assert (mode.counter_example, mode.parent) == ("A date of another event.", top)
    page = open_page("modes", SIGNED_IN, view="book", code="wrong-date")
    version = audited_workbench.modes.codebook(ADA).version
    page.selectbox(key=f"modes-edit-wrong-date-{version}-into").set_value(top).run()
    page = press(page, "modes-merge")
    merged = audited_workbench.modes.codebook(ADA).find("wrong-date")
    assert merged is not None
    assert merged.code == top
    page = press(page, "modes-undo-merge")
    assert "is a separate mode again" in texts(page)
    own = audited_workbench.modes.codebook(ADA).find("wrong-date")
    assert own is not None
    assert own.code == "wrong-date"


def test_a_case_shows_its_modes_and_offers_to_add_one(audited_workbench: Workbench) -> None:
    audited_workbench.modes.add_mode(ADA, WRONG_DATE)
    audited_workbench.modes.code(ADA, AUDITED[0], ["wrong-date"])
    page = open_page("review", SIGNED_IN, case=AUDITED[0])
    assert "Failure modes: Wrong date" in texts(page).replace("\\", "")
    page = press(page, "case-add-code")
    assert page.button(key="case-code-add").disabled
    assert not page.button(key="case-code-remove-0").disabled


def test_a_merge_is_taken_back_and_rows_of_a_mode_are_moved_to_another_or_removed(
    audited_workbench: Workbench,
) -> None:
    modes = audited_workbench.modes
    modes.add_mode(ADA, WRONG_DATE)
    modes.add_mode(ADA, WRONG_UNIT)
    modes.merge(ADA, ["wrong-date"], "wrong-unit")
    page = open_page("modes", SIGNED_IN, view="book")
    press(page, "modes-unmerge-wrong-date")
    assert {mode.code for mode in modes.codebook(ADA).in_use} == {"wrong-date", "wrong-unit"}
    reject(audited_workbench, AUDITED[0], note="The year is invented.")
    modes.apply(
        ADA,
        ["wrong-date"],
        [row.id for row in find_observations(audited_workbench, kinds=("note",))],
    )
    page = open_page("modes", SIGNED_IN, mode="wrong-date")
    page.checkbox[0].check().run()
    page.selectbox(key="modes-code").set_value("wrong-unit").run()
    page = press(page, "modes-move")
    assert "Moved 1 row from “Wrong date”." in texts(page).replace("\\", "")
    assert [row.codes for row in find_observations(audited_workbench, kinds=("note",))] == [
        ("wrong-unit",)
    ]
    page = open_page("modes", SIGNED_IN, mode="wrong-unit")
    page = press(page.checkbox[0].check().run(), "modes-remove")
    assert "Removed “Wrong unit” from 1 row." in texts(page).replace("\\", "")
    assert [row.codes for row in find_observations(audited_workbench, kinds=("note",))] == [()]


def test_a_merge_says_before_how_many_cases_and_rows_it_moves(audited_workbench: Workbench) -> None:
    reject(audited_workbench, AUDITED[0], note="The year is invented.")
    modes = audited_workbench.modes
    modes.add_mode(ADA, WRONG_DATE)
    modes.add_mode(ADA, WRONG_UNIT)
    modes.apply(
        ADA,
        ["wrong-date"],
        [row.id for row in find_observations(audited_workbench, kinds=("note",))],
    )
    page = open_page("modes", SIGNED_IN, view="book", code="wrong-date")
    [into] = [box for box in page.selectbox if str(box.key).endswith("-into")]
    page = into.set_value("wrong-unit").run()
    assert "1 case and 1 row will count for “Wrong unit”." in texts(page).replace("\\", "")


def test_rows_are_filtered_by_cause_and_by_day(audited_workbench: Workbench) -> None:
    reject(audited_workbench, AUDITED[0], note="The year is invented.")
    [note] = find_observations(audited_workbench, kinds=("note",))
    today, before = note.at[:10], "2001-01-01"
    assert len(open_page("modes", SIGNED_IN, kind="note", since=today, until=today).checkbox) == 1
    assert not open_page("modes", SIGNED_IN, kind="note", until=before).checkbox
    assert not open_page("modes", SIGNED_IN, kind="note", cause="citation").checkbox
    reasons = open_page("modes", SIGNED_IN, kind="reason", cause="retrieval")
    assert len(reasons.checkbox) == len(
        find_observations(audited_workbench, causes=("retrieval",))
    ) - len(find_observations(audited_workbench, causes=("retrieval",), kinds=("issue",)))


def test_rows_are_filtered_by_system(audited_workbench: Workbench) -> None:
    reject(audited_workbench, AUDITED[0], note="The year is invented.")
    case = audited_workbench.store.cases.get(AUDITED[0]).as_answer_of("birch")
    audited_workbench.cases.add_one(ADA, case)
    reject(audited_workbench, case.id, note="Another year is invented.")
    page = open_page("modes", SIGNED_IN, kind="note", system="birch")
    assert [box.label.replace("\\", "") for box in page.checkbox] == ["Another year is invented."]
    assert "birch" in next(field for field in page.multiselect if field.label == "System").options
    page = open_page("modes", SIGNED_IN, kind="note", system="birch", author="Nobody")
    assert "System: birch" in texts(page).replace("\\", "")


def test_a_name_is_suggested_only_where_a_model_is_set(audited_workbench: Workbench) -> None:
    (group, *_) = audited_workbench.modes.groups(ADA).groups
    page = open_page("modes", SIGNED_IN, view="groups", group=group.id)
    assert "set a language model as critic" in texts(page)
    assert not any(button.key == "modes-suggest" for button in page.button)


@pytest.mark.parametrize("view", ["read", "groups", "book", "counts"])
def test_each_view_says_how_to_fill_it(view: str, audited_workbench: Workbench) -> None:
    shown = texts(open_page("modes", SIGNED_IN, view=view, q="zzzz"))
    expected = {
        "read": "No rows match these filters:",
        "groups": "without a code in",
        "book": "The codebook is empty.",
        "counts": "Nothing to count yet.",
    }
    assert expected[view] in shown


@pytest.mark.parametrize("view", ["read", "groups", "book", "counts"])
def test_a_blind_reviewer_sees_the_same_page_with_and_without_a_colleagues_code(
    view: str, audited_workbench: Workbench
) -> None:
    audited_workbench.team.put_in_force(ADA, QueuePolicy(reviewers=2, rule="adjudicated"))
    audited_workbench.modes.add_mode(ADA, WRONG_DATE)
    before = drawn_for_ben(view)
    audited_workbench.modes.code(ADA, AUDITED[0], ["wrong-date"])
    reject(audited_workbench, AUDITED[0], note="The year is invented.")
    assert drawn_for_ben(view) == before


def test_a_colleagues_note_and_code_are_shown_if_one_person_decides(
    audited_workbench: Workbench,
) -> None:
    audited_workbench.modes.add_mode(ADA, WRONG_DATE)
    before = drawn_for_ben("read")
    reject(audited_workbench, AUDITED[0], note="The year is invented.")
    assert drawn_for_ben("read") != before
    counted = drawn_for_ben("counts")
    audited_workbench.modes.code(ADA, AUDITED[0], ["wrong-date"])
    assert drawn_for_ben("counts") != counted


def drawn_for_ben(view: str) -> str:
    page = open_page("modes", {"reviewer-name": BEN.name}, view=view)
    assert page.title[0].value == "Failure modes"
    return "\n".join(str(part.proto) for part in page.main if hasattr(part, "proto"))


def test_markup_in_a_note_is_shown_as_text(audited_workbench: Workbench) -> None:
    reject(audited_workbench, AUDITED[0], note="![x](https://evil.example/x.png) **bold**")
    page = open_page("modes", SIGNED_IN, kind="note")
    assert "![x](https" not in page.checkbox[0].label
    assert "**bold**" not in page.checkbox[0].label


def test_the_coded_rows_of_a_mode_open_and_a_row_is_split_off(
    audited_workbench: Workbench,
) -> None:
    reject(audited_workbench, AUDITED[0], note="The year is invented.")
    modes = audited_workbench.modes
    modes.add_mode(ADA, WRONG_DATE)
    modes.apply(
        ADA,
        ["wrong-date"],
        [row.id for row in find_observations(audited_workbench, kinds=("note",))],
    )
    page = press(open_page("modes", SIGNED_IN, view="book", code="wrong-date"), "modes-read-rows")
    assert dict(page.query_params) == {"mode": "wrong-date"}
    [chosen] = find_observations(audited_workbench, kinds=("note",))
    page = page.checkbox[0].check().run()
    assert page.checkbox[0].value
    # AppTest can't type a name that is no option.
    page = open_page(
        "modes",
        {**SIGNED_IN, "modes-code": "Invented year", "modes-chosen": [chosen.id]},
        mode="wrong-date",
    )
    page = press(page, "modes-move")
    assert "Moved 1 row from “Wrong date”." in texts(page).replace("\\", "")
    [note] = find_observations(audited_workbench, kinds=("note",))
    assert note.codes == ("invented-year",)


def test_a_mode_that_is_open_in_the_codebook_does_not_filter_the_rows(
    audited_workbench: Workbench,
) -> None:
    audited_workbench.modes.add_mode(ADA, WRONG_DATE)
    page = open_page("modes", SIGNED_IN, view="book", code="wrong-date")
    assert page.button(key="modes-read-rows")
    page = page.segmented_control(key="modes-view").set_value("read").run()
    assert page.checkbox
    assert not dict(page.query_params)


def test_rows_that_no_filter_leaves_are_named_with_the_filters_and_found_without_them(
    audited_workbench: Workbench,
) -> None:
    audited_workbench.modes.add_mode(ADA, WRONG_DATE)
    filters = {"q": "zzzz", "kind": "note", "mode": "wrong-date", "cause": "citation"}
    page = open_page("modes", SIGNED_IN, **filters, author="Ben", since="2001-01-01", uncoded="yes")
    shown = texts(page).replace("\\", "")
    for filter_ in ("“zzzz”", "Kind: notes", "Mode: Wrong date", "Author: Ben", "Without a code"):
        assert filter_ in shown
    assert "From: 2001-01-01" in shown
    page = press(page, "modes-clear-filters")
    assert page.checkbox
    assert not dict(page.query_params)


def test_chosen_rows_stay_chosen_on_another_page_and_are_applied_together(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    audited_workbench.modes.add_mode(ADA, WRONG_DATE)
    monkeypatch.setattr(coding, "ROWS", 3)
    page = open_page("modes", SIGNED_IN)
    page = page.checkbox[0].check().run()
    page.query_params["page"] = "2"
    page = page.run().checkbox[0].check().run()
    assert "1 of 2 chosen rows not on this page" in texts(page)
    page.query_params["page"] = "1"
    page = page.run()
    assert page.checkbox[0].value
    page.selectbox(key="modes-code").set_value("wrong-date").run()
    press(page, "modes-apply")
    assert len(find_observations(audited_workbench, codes=("wrong-date",))) == 2


def test_a_choice_of_rows_is_cleared_by_a_button(audited_workbench: Workbench) -> None:
    page = open_page("modes", SIGNED_IN)
    page = press(page.checkbox[0].check().run(), "modes-clear-choice")
    assert not any(box.value for box in page.checkbox)
    assert "modes-clear-choice" not in [button.key for button in page.button]


def test_a_row_without_similar_ones_is_not_similar_to_itself(audited_workbench: Workbench) -> None:
    reject(audited_workbench, AUDITED[0], note="The year is invented.")
    audited_workbench.modes.add_mode(ADA, WRONG_DATE)
    others = [row.id for row in find_observations(audited_workbench) if row.kind != "note"]
    audited_workbench.modes.apply(ADA, ["wrong-date"], others)
    page = open_page("modes", SIGNED_IN, kind="note")
    page.checkbox[0].check().run()
    page.selectbox(key="modes-code").set_value("wrong-date").run()
    page = press(page, "modes-similar")
    assert "No other row is without “Wrong date”." in texts(page).replace("\\", "")
    assert "modes-apply-similar" not in [button.key for button in page.button]


@pytest.mark.parametrize(
    "typed", ["wrong dates", "Wrong d", "wrnog date", "Wrong-date", "a wrong date"]
)
def test_a_typed_name_that_resembles_a_mode_offers_the_mode_first(
    typed: str, audited_workbench: Workbench
) -> None:
    reject(audited_workbench, AUDITED[0], note="The year is invented.")
    audited_workbench.modes.add_mode(ADA, WRONG_DATE)
    [note] = find_observations(audited_workbench, kinds=("note",))
    page = open_page("modes", {**SIGNED_IN, "modes-code": typed, "modes-chosen": [note.id]})
    [meant] = [radio for radio in page.radio if radio.key == f"modes-code-alike-{typed}"]
    assert meant.options[0] == "Wrong date"
    assert page.button(key="modes-apply").disabled
    meant.set_value("wrong-date").run()
    press(page, "modes-apply")
    assert [mode.code for mode in audited_workbench.modes.codebook(ADA).in_use] == ["wrong-date"]
    assert len(find_observations(audited_workbench, codes=("wrong-date",))) == 1


def test_a_typed_name_that_resembles_no_mode_is_added_at_once(audited_workbench: Workbench) -> None:
    reject(audited_workbench, AUDITED[0], note="The year is invented.")
    audited_workbench.modes.add_mode(ADA, WRONG_DATE)
    [note] = find_observations(audited_workbench, kinds=("note",))
    page = open_page("modes", {**SIGNED_IN, "modes-code": "Rude", "modes-chosen": [note.id]})
    assert not page.radio
    press(page, "modes-apply")
    assert len(find_observations(audited_workbench, codes=("rude",))) == 1


def test_a_message_of_one_view_is_not_shown_in_another(audited_workbench: Workbench) -> None:
    page = press(open_page("modes", SIGNED_IN, view="book"), "modes-start-rag")
    assert "The codebook has" in texts(page)
    page = page.segmented_control(key="modes-view").set_value("read").run()
    assert "The codebook has" not in texts(page)
    page = page.segmented_control(key="modes-view").set_value("book").run()
    assert "The codebook has" not in texts(page)


def test_the_rows_of_a_case_that_has_a_code_are_not_without_one(
    audited_workbench: Workbench,
) -> None:
    audited_workbench.modes.add_mode(ADA, WRONG_DATE)
    uncoded = find_observations(audited_workbench, uncoded=True)
    coded = uncoded[0].case_id
    audited_workbench.modes.code(ADA, coded, ["wrong-date"])
    left = [row for row in uncoded if row.case_id != coded]
    assert find_observations(audited_workbench, uncoded=True) == left
    page = open_page("modes", SIGNED_IN, uncoded="yes")
    assert len(page.checkbox) == len(left)
    groups = audited_workbench.modes.groups(ADA)
    assert groups.observations == len([row for row in left if row.is_fault])
    [applied] = audited_workbench.modes.list_codes(ADA, coded)
    audited_workbench.modes.remove_code(ADA, applied)
    assert find_observations(audited_workbench, uncoded=True) == uncoded


def test_the_id_of_a_case_finds_its_rows(audited_workbench: Workbench) -> None:
    [case_id, *_] = {row.case_id for row in find_observations(audited_workbench)}
    own = [row for row in find_observations(audited_workbench) if row.case_id == case_id]
    reject(audited_workbench, AUDITED[3], note=f"As in {case_id}.")
    [note] = find_observations(audited_workbench, kinds=("note",))
    rows = find_observations(audited_workbench, text=f" {case_id} ")
    assert {row.id for row in rows} == {note.id, *(row.id for row in own)}
    page = open_page("modes", SIGNED_IN, q=case_id)
    assert len(page.checkbox) == len(rows)


def test_counts_by_cause_say_what_a_cause_is_if_no_coded_row_has_one(
    audited_workbench: Workbench,
) -> None:
    audited_workbench.modes.add_mode(ADA, WRONG_DATE)
    audited_workbench.modes.code(ADA, AUDITED[0], ["wrong-date"])
    shown = texts(open_page("modes", SIGNED_IN, view="counts", facet="cause"))
    assert "No coded row has a cause." in shown
    assert "Nothing to count yet" not in shown


def test_modes_are_counted_side_by_side_with_zeros_and_a_total_of_any_mode(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = audited_workbench.modes
    for mode in (WRONG_DATE, WRONG_UNIT):
        modes.add_mode(ADA, mode)
    modes.code(ADA, AUDITED[0], ["wrong-date"])
    table = modes.tabulate_modes(ADA, "field")
    assert sum(table.examined) == len(AUDITED)
    assert sum(table.cases["wrong-date"]) == 1
    assert set(table.cases["wrong-unit"]) == {0}
    modes.code(ADA, AUDITED[0], ["wrong-unit"])
    assert sum(modes.tabulate_modes(ADA, "field").any_mode) == 1
    modes.nest(ADA, ["wrong-unit"], "wrong-date")
    drawn: list[LinkedRow] = []
    monkeypatch.setattr(counts, "linked_table", lambda _, rows, **__: drawn.extend(rows))
    page = open_page("modes", SIGNED_IN, view="counts", facet="field")
    assert "Modes by field" in texts(page)
    of_table = [row["cells"] for row in drawn[-4:]]
    names = ["Wrong date", "· Wrong unit", "Any mode", "Examined cases"]
    assert [cells[0] for cells in of_table] == [{"text": name} for name in names]
    assert any(
        str(cell).startswith(f"1 of {base}, {1 / base:.0%} (")
        for cell, base in zip(of_table[1][1:], table.examined, strict=False)
    )
    page = open_page("modes", SIGNED_IN, view="counts", facet="mode")
    assert "Modes by" not in texts(page)


def test_the_codebook_shows_how_many_cases_and_rows_have_each_mode(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    audited_workbench.modes.add_mode(ADA, WRONG_DATE)
    for case_id in AUDITED[:2]:
        reject(audited_workbench, case_id, note="The year is invented.")
    notes = [row.id for row in find_observations(audited_workbench, kinds=("note",))]
    audited_workbench.modes.apply(ADA, ["wrong-date"], notes)
    drawn: list[LinkedRow] = []
    monkeypatch.setattr(book, "linked_table", lambda _, rows, **__: drawn.extend(rows))
    open_page("modes", SIGNED_IN, view="book")
    [row] = drawn
    assert row["cells"][1:3] == ["2", "2"]


def test_the_list_of_groups_shows_a_text_of_each(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    (group, *_) = audited_workbench.modes.groups(ADA).groups
    drawn: list[LinkedRow] = []
    monkeypatch.setattr(groups, "linked_table", lambda _, rows, **__: drawn.extend(rows))
    open_page("modes", SIGNED_IN, view="groups")
    *_, newest = find_observations(audited_workbench, patterns=group.patterns[:1])
    assert newest.text
    assert drawn[0]["cells"][3] == {"quote": shorten(newest.text, groups.TITLE_LENGTH)}


def test_a_mode_is_added_in_the_codebook_under_a_parent(audited_workbench: Workbench) -> None:
    audited_workbench.modes.add_mode(ADA, WRONG_DATE)
    version = audited_workbench.modes.codebook(ADA).version
    page = open_page("modes", SIGNED_IN, view="book")
    page.text_input(key=f"modes-new-{version}-name").set_value("Wrong month")
    page.selectbox(key=f"modes-new-{version}-parent").set_value("wrong-date")
    [add] = [button for button in page.button if button.label == "Add mode"]
    page = add.click().run()
    assert "Added “Wrong month”." in texts(page).replace("\\", "")
    added = audited_workbench.modes.codebook(ADA).find("wrong-month")
    assert added is not None
    assert added.parent == "wrong-date"


def test_a_version_of_the_codebook_says_what_it_changed(audited_workbench: Workbench) -> None:
    modes = audited_workbench.modes
    modes.add_mode(ADA, WRONG_DATE)
    modes.add_mode(ADA, WRONG_UNIT)
    update = {"name": "Wrong units", "example": "5 mg", "parent": "wrong-date"}
    modes.change_mode(ADA, WRONG_UNIT.model_copy(update=update))
    modes.merge(ADA, ["wrong-unit"], "wrong-date")
    modes.unmerge(ADA, "wrong-unit")
    versions = [version.codebook for version in modes.history(ADA)]
    empty = Codebook()
    assert [
        book.describe_change(before, after)
        for before, after in zip([empty, *versions], versions, strict=False)
    ] == [
        "added “Wrong date” (1 mode)",
        "added “Wrong unit” (2 modes)",
        (
            "renamed “Wrong unit” to “Wrong units”; changed the example of “Wrong units”;"
            " nested under “Wrong date”: “Wrong units” (2 modes)"
        ),
        "merged into “Wrong date”: “Wrong units” (1 mode)",
        "unmerged “Wrong units” (2 modes)",
    ]
    shown = texts(open_page("modes", SIGNED_IN, view="book")).replace("\\", "")
    assert "Ada: unmerged “Wrong units” (2 modes)" in shown
    kept = "changed the definition and example of"
    changed = WRONG_DATE.model_copy(update={"definition": "d", "example": "e"})
    assert kept in book.describe_change(versions[0], Codebook(modes=(changed,)))
    many = tuple(WRONG_DATE.model_copy(update={"code": f"c{n}", "name": f"n{n}"}) for n in range(9))
    assert "and 4 more (9 modes)" in book.describe_change(empty, Codebook(modes=many))
