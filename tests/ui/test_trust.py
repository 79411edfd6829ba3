"""The page Trust answers a stakeholder's questions first, and each figure leads to its cases."""

from __future__ import annotations

import pandas as pd
import pytest

from masis.datasets.writers.lines import frame_csv
from masis.schema.team import QueuePolicy
from masis.services import Workbench
from masis.services.trust.summary import IN_VIEW, agreement_base_text
from masis.ui.trust.page import VIEWS
from tests.reviewing import decide
from tests.ui.conftest import AUDITED, open_page, texts


def decide_three(workbench: Workbench) -> None:
    for case, verdict in zip(AUDITED, ("reject", "reject", "approve"), strict=False):
        decide(workbench, case, verdict, "Bo", iteration=1, reason="Unsupported")


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_explains_what_is_missing_before_the_first_decision(
    audited_workbench: Workbench, view: str
) -> None:
    page = texts(open_page("trust", view=view))
    assert "Unknown so far." in page
    assert "No, there is no evidence for that yet." in page


def test_figures_have_intervals_and_link_to_their_cases(audited_workbench: Workbench) -> None:
    decide_three(audited_workbench)
    app = open_page("trust", list="must_look")
    drawn = "\n".join(str(element.proto) for element in app.main if hasattr(element, "proto"))
    for part in (
        *(
            "100% (2 of 2; 95% interval",
            "2 are too few to tell. The true share may be anything from 16% to 100%.",
        ),
        *(
            "Always giving the same verdict scores 0.",
            "3 cases, too few to tell how strong the agreement beyond chance is",
        ),
    ):
        assert part in drawn
    assert "the cases" in texts(app)
    assert "simulated" not in texts(app)
    app = open_page("trust", list="faulty")
    assert "Found faulty by people: the cases** (2)" in texts(app)


def test_missing_labels_are_requested_and_orders_are_compared_by_decisions(
    audited_workbench: Workbench,
) -> None:
    decide_three(audited_workbench)
    assert "Only labels that were imported with audited cases count" in texts(
        open_page("trust", source="gold", field="Nowhere")
    )
    page = texts(open_page("trust", source="gold", field="Nowhere", view="next"))
    assert (
        "3 answers are decided, 2 faulty and 1 right. At least 20 are needed, some of each kind."
        in page
    )


def test_without_spot_checks_the_page_explains_how_to_start(
    audited_workbench: Workbench,
) -> None:
    page = open_page("trust", view="missed")
    assert "No spot checks yet" in texts(page)
    assert not page.slider


def test_a_sample_needs_enough_answers(audited_workbench: Workbench) -> None:
    page = open_page("trust", view="guarantee")
    pool = audited_workbench.trust.offer(audited_workbench.trust.auditors()[0][0]).pool
    assert "You need 149 blind decisions if none is faulty" in texts(page)
    # in What should you do next? too
    assert (
        texts(page).count(f"{pool} undecided answers can be drawn, {149 - pool} more are needed")
        == 2
    )
    assert next(button for button in page.button if button.label.startswith("Draw")).disabled
    audited_workbench.store.team.put_in_force(
        "Ada", QueuePolicy(reviewers=2, rule="adjudicated", machine="never")
    )
    for case in AUDITED:
        decide(audited_workbench, case, reviewer="Bo")
    assert audited_workbench.trust.offer(audited_workbench.trust.auditors()[0][0]).pool == 0 < pool
    page = open_page("trust", view="guarantee")
    assert "Too few answers**. Audit more cases, or tolerate more." in texts(page)
    # how many would say what audits found, or others decided
    assert "undecided answers can be drawn" not in texts(page)
    assert next(button for button in page.button if button.label.startswith("Draw")).disabled


def test_a_flag_links_to_its_cases_and_a_filter_can_be_cleared(
    audited_workbench: Workbench,
) -> None:
    decide_three(audited_workbench)
    app = open_page("trust", list="flag:invalid_reference", field="Nowhere")
    assert "No answer to compare yet" in texts(app)
    next(button for button in app.button if button.label.startswith("Clear filters")).click()
    app.run()
    listed = next(markdown.value for markdown in app.markdown if ": the cases" in markdown.value)
    assert listed == "**fabricated citation: the cases** (2)"


def test_a_claim_verdict_links_to_its_cases(
    audited_workbench: Workbench,
) -> None:
    found = audited_workbench.runs.get(str(audited_workbench.cases.summary("strategy-01").run_id))
    claim = next(
        claim.claim for claim in found.iterations[0].claims if claim.verdict == "contradicted"
    )
    label = {
        "target": "claim",
        "start": claim.start,
        "end": claim.end,
        "text": claim.text,
        "label": "contradicted",
    }
    decide(audited_workbench, "strategy-01", "reject", "Bo", iteration=1, labels=[label])
    app = open_page("trust", level="claim", list="contradicted")
    listed = next(markdown.value for markdown in app.markdown if ": the cases" in markdown.value)
    assert listed == "**Contradicted: the cases** (1)"


def test_a_name_of_a_reviewer_is_no_markup(audited_workbench: Workbench) -> None:
    audited_workbench.store.team.put_in_force("Ada", QueuePolicy(reviewers=2))
    decide(audited_workbench, AUDITED[0], "approve", "[x](//evil)")
    decide(audited_workbench, AUDITED[0], "reject", ":red[y]", reason="Unsupported")
    page = open_page("trust", view="people", pair="1")
    listed = next(
        markdown.value for markdown in page.markdown if "Cases on which" in markdown.value
    )
    assert "\\[x\\]" in listed
    assert "\\:red\\[y\\]" in listed


def test_a_pair_of_reviewers_links_to_their_disagreements(
    audited_workbench: Workbench,
) -> None:
    audited_workbench.store.team.put_in_force("Ada", QueuePolicy(reviewers=2))
    decide(audited_workbench, AUDITED[0], "approve", "Bo", extra={"seconds": 101.0})
    decide(audited_workbench, AUDITED[0], "reject", "Cleo", reason="Unsupported")
    differ = "Cases on which Bo and Cleo differ"
    assert differ in texts(open_page("trust", view="people", pair="1"))
    assert differ not in texts(open_page("trust", view="people", pair="2"))
    own = open_page("trust", {"reviewer-name": "Bo"}, view="own")
    assert "1 min 41 s" in "\n".join(
        str(element.proto) for element in own.main if hasattr(element, "proto")
    )
    for who in ("x", "9"):
        assert "Settled differently" not in texts(open_page("trust", view="own", who=who))


def test_agreement_says_what_it_rests_on_and_starts_with_one_coefficient(
    audited_workbench: Workbench,
) -> None:
    audited_workbench.store.team.put_in_force("Ada", QueuePolicy(reviewers=2))
    decide(audited_workbench, AUDITED[0], "approve", "Bo")
    decide(audited_workbench, AUDITED[0], "reject", "Cleo", reason="Unsupported")
    decide(audited_workbench, AUDITED[0], "reject", "Dan", reason="No", kind="adjudication")
    base = "Based on 2 decisions of single reviewers, before any adjudication."
    page = open_page("trust", view="people")
    for shown in (page, open_page("team")):
        assert base in texts(shown)
    [others] = [box for box in page.expander if box.label.startswith("Other coefficients")]
    assert not others.proto.expanded
    assert "made" not in agreement_base_text(4, 0)
    assert "people made 1." in agreement_base_text(4, 3)


def test_decisions_with_a_visible_verdict_are_shown_separately(
    audited_workbench: Workbench,
) -> None:
    decide(audited_workbench, AUDITED[0], iteration=1, machine_shown=["scores"])
    app = open_page("trust", seen="too")
    assert "Unknown so far." in texts(app)
    assert any(IN_VIEW in warning.value for warning in app.warning)
    assert "Left out: 0" not in texts(app)
    left = app.button(key="trust-blind").click().run()
    assert "seen" not in left.query_params
    assert "Left out: 1 answer" in texts(left)


def test_a_score_needs_enough_decisions_of_both_kinds(
    audited_workbench: Workbench,
) -> None:
    decide(audited_workbench, AUDITED[0], "reject", "Bo", reason="Unsupported")
    app = open_page("trust", view="next")
    assert app.button(key="score-fit").disabled
    assert "There are 1: 1 faulty and 0 right" in texts(app)
    assert "Too few decisions to compare the orders of the queue." in texts(app)


def test_links_use_the_name_of_the_section_they_open(
    audited_workbench: Workbench,
) -> None:
    decide_three(audited_workbench)

    pages = [open_page(name, {"reviewer-name": "Bo"}) for name in ("trust", "metrics")]
    for shown in pages:
        drawn = "\n".join(str(element.proto) for element in shown.main if hasattr(element, "proto"))
        assert "Flags that were right" in drawn
        assert "Faulty answers flagged" in drawn
    assert "page-open-at" not in pages[0].session_state
    for address, place in (
        ({"view": "people"}, "trust-view"),
        ({"list": "must_look"}, "trust-cases"),
    ):
        assert open_page("trust", **address).session_state["page-open-at"] == place


def test_a_downloaded_table_has_no_cell_that_a_spreadsheet_runs() -> None:
    table = pd.DataFrame({"case": ["=1+1", "case-2"], "share": [-0.5, 1.0]})
    assert frame_csv(table).decode().splitlines() == ["case,share", "'=1+1,-0.5", "case-2,1.0"]
