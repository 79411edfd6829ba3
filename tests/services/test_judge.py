"""Judge versions: from a draft to its adoption, what audits are told, and what runs record."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from masis.errors import Conflict, InputError, NotAllowed, SettingsError, UnknownRecord
from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.schema.judge import (
    DEFAULT_JUDGE,
    CodeCheck,
    HouseRule,
    JudgeAdoption,
    JudgeContent,
    RuleExample,
    SeverityRule,
    question_id,
)
from masis.schema.run import Run
from masis.schema.team import QueuePolicy
from masis.services import SIGN_IN_REQUIRED, Workbench
from masis.services.judge.briefs import JudgeBriefs
from masis.services.judge.versions import JudgeService
from masis.settings import Settings
from masis.store.reviews.judge_versions import WITH_SIMILAR_WORDS
from masis.views.story import story
from tests.cases import case_of
from tests.cli.running import case as bridge
from tests.llm.asking import KEY, settings_here
from tests.reviewing import ADA, decide, undone
from tests.served_replies import Behaviour, Json, Request, reply_with, sensible
from tests.serving_models import ModelServer

KINDS = ("rounded", "no currency", "fine", "wrong")
CASES = 24

CURRENCY = HouseRule(
    id="currency", sentence="A price has its currency", force="must", severity="high"
)
ROUNDING = HouseRule(
    id="rounding", sentence="Rounded figures", force="does_not_matter", issue_types=("factual",)
)
SHORT = HouseRule(
    id="short",
    sentence="At most three words",
    force="must",
    severity="high",
    check=CodeCheck(kind="maximal_length", limit=3),
)


def kind_of(number: int) -> str:
    return KINDS[number % len(KINDS)]


def held_out(number: int) -> bool:
    return number // len(KINDS) % 2 == 1


def priced_case(number: int) -> Case:
    """Return one of 24 cases, six of each kind."""
    price = {
        "rounded": f"about {100 + number} euros",
        "no currency": f"{100 + number}",
        "fine": f"{100 + number} euros",
        "wrong": f"{900 + number} yen",
    }[kind_of(number)]
    return case_of(
        f"Pump {number} of the works costs {price} [1].",
        {"1": f"Pump {number} of the works costs {100 + number} euros."},
        case_id=f"pump-{number}",
        query=f"What is the price of pump {number} of the works?",
    )


def team_rejects(number: int) -> bool:
    """Return the team's verdict: rounded figures are fine, and prices need a currency."""
    return kind_of(number) in ("no currency", "wrong")


def read_as_judge(request: Request) -> Behaviour | None:
    """Reply as a careful reader would: without house rules, rounded figures are flagged, and
    missing currencies aren't.
    """
    if not request.schema_name.endswith("critique_reply"):
        return None
    answer = request.fences("ANSWER")[0]
    rules = {
        row["id"]: row
        for fence in request.fences("HOUSE_RULES")
        for row in map(json.loads, fence.splitlines())
    }
    issues = []
    if "about" in answer:
        named = next((name for name, row in rules.items() if "Rounded" in row["sentence"]), "")
        issues.append(raised_issue("factual", "The figure is rounded.", answer, rules, named))
    if "yen" in answer:
        issues.append(raised_issue("contradiction", "The evidence has euros.", answer, rules, ""))
    needs_currency = next(
        (name for name, row in rules.items() if "currency" in row["sentence"]), ""
    )
    if needs_currency and "euros" not in answer and "yen" not in answer:
        issues.append(raised_issue("missing_info", "No currency.", answer, rules, needs_currency))
    return reply_with(sensible(request, issues="none") | {"issues": issues})


def raised_issue(type_: str, description: str, answer: str, rules: Json, named: str) -> Json:
    house_rule = {"house_rule": named} if rules else {}
    return {
        "type": type_,
        "severity": "high",
        "description": description,
        "reasoning": "",
        "location": answer,
        "suggestion": "",
        "evidence_ids": ["1"],
        **house_rule,
    }


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    with ModelServer(read_as_judge) as serving:
        yield serving


@pytest.fixture(scope="module")
def decided_prices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 cases, audited without a model and decided, to copy."""
    path = tmp_path_factory.mktemp("prices") / "decided.db"
    opened = Workbench.open(path)
    opened.cases.add(ADA, [priced_case(number) for number in range(CASES)])
    for number in range(CASES):
        opened.audits.audit(ADA, priced_case(number), settings=Settings())
        verdict = "reject" if team_rejects(number) else "approve"
        decide(opened, f"pump-{number}", verdict, reason=f"read pump {number}", iteration=1)
    opened.close()
    return path


@pytest.fixture
def team(tmp_path: Path, decided_prices: Path, server: ModelServer) -> Iterator[Workbench]:
    """24 decided cases; their only model is the critic."""
    settings = settings_here(server, max_iterations=1, evaluate="never", spot_check_share=0)
    offline = dict.fromkeys(("drafter", "verifier", "reviser", "evaluator"), "offline")
    database = Path(shutil.copy(decided_prices, tmp_path / "team.db"))
    opened = Workbench.open(database, settings.model_copy(update=offline))
    yield opened
    opened.close()


HELD_OUT = [number for number in range(CASES) if held_out(number)]
LEARNED = [number for number in range(CASES) if not held_out(number)]


def content(*rules: HouseRule, **fields: Any) -> JudgeContent:
    given = {
        "rules": rules,
        "example_cases": tuple(f"pump-{number}" for number in LEARNED),
        "held_out": tuple(question_id(priced_case(number).question) for number in HELD_OUT),
    }
    return JudgeContent.model_validate(given | fields)


def audited(team: Workbench, number: int, judge: str) -> Run:
    settings = team.settings.model_copy(update={"judge": judge})
    return team.audits.audit(ADA, priced_case(number), settings=settings)


def critic_flags(run: Run) -> bool:
    """Return whether the critic, or a rule, has a serious issue with the original answer."""
    assert run.original is not None
    return any(issue.major for issue in run.original.issues if issue.source in ("critic", "checks"))


@pytest.mark.slow
def test_two_house_rules_align_the_judge_on_the_held_out_half_and_flip_nothing_else(
    team: Workbench, server: ModelServer
) -> None:
    team.judge.draft(ADA, "prices 1", content(CURRENCY, ROUNDING))
    before = {number: audited(team, number, DEFAULT_JUDGE) for number in HELD_OUT}
    after = {number: audited(team, number, "prices 1") for number in HELD_OUT}
    disagreed = {
        number for number in HELD_OUT if critic_flags(before[number]) != team_rejects(number)
    }
    assert {kind_of(number) for number in disagreed} == {"rounded", "no currency"}
    assert len(disagreed) == 6
    flipped = {
        number for number in HELD_OUT if critic_flags(before[number]) != critic_flags(after[number])
    }
    assert flipped == disagreed
    assert all(critic_flags(after[number]) == team_rejects(number) for number in HELD_OUT)
    for number in flipped:
        original = after[number].original
        assert original is not None
        if kind_of(number) == "rounded":
            [ruling] = original.critique.rulings
            assert (ruling.rule, ruling.effect) == ("rounding", "dropped")
            assert any("House rule rounding" in note for note in original.critique.notes)
        else:
            [issue] = [issue for issue in original.issues if issue.source == "critic"]
            assert issue.rule == "house_currency"
    untouched = [after[number].original for number in HELD_OUT if number not in flipped]
    assert not any(original.critique.rulings for original in untouched if original)


@pytest.mark.slow
def test_no_text_of_a_held_out_case_reaches_a_prompt_as_an_example(
    team: Workbench, server: ModelServer
) -> None:
    version = team.judge.draft(ADA, "prices 1", content(CURRENCY, ROUNDING, examples_shown=8))
    # Even if the stored content named them, as a version by another program might.
    named = tuple(RuleExample(case_id=f"pump-{number}") for number in HELD_OUT[:6])
    everything = content(
        CURRENCY.model_copy(update={"examples": named}),
        example_cases=tuple(f"pump-{number}" for number in range(CASES)),
        examples_shown=8,
    )
    team.store.judges.change(
        version.model_copy(update={"content": everything, "digest": everything.digest})
    )
    server.requests.clear()
    runs = {number: audited(team, number, "prices 1") for number in range(CASES)}
    asked = [request for request in server.requests if request.fences("HOUSE_RULES")]
    assert len(asked) == CASES
    shown = 0
    for request in asked:
        [own] = request.fences("QUESTION")
        for fence in request.fences("EXAMPLES"):
            shown += len(fence.splitlines())
            for number in HELD_OUT:
                assert priced_case(number).query not in fence
                assert (priced_case(number).answer or "") not in fence
            assert own not in fence, "the case itself"
    assert shown > CASES
    held = {f"pump-{number}" for number in HELD_OUT}
    for number, run in runs.items():
        assert run.judge is not None
        assert run.judge.examples
        assert not held & set(run.judge.examples)
        assert f"pump-{number}" not in run.judge.examples


def test_another_answer_to_the_same_question_and_a_copy_of_the_answer_are_no_examples(
    team: Workbench,
) -> None:
    team.judge.draft(ADA, "prices 1", content(CURRENCY, examples_shown=8, held_out=()))
    settings = team.settings.model_copy(update={"judge": "prices 1"})
    briefs = JudgeBriefs(team.store)
    same_question = case_of(
        "It has a price [1].", {"1": "A price."}, query=f" {priced_case(0).query.upper()}"
    )
    copy = priced_case(1).model_copy(
        update={"id": "copy", "query": "What is the price of the works?"}
    )
    for case, absent in ((same_question, "pump-0"), (copy, "pump-1")):
        brief = briefs.brief(case, settings)
        assert brief is not None
        assert brief.use.examples
        assert absent not in brief.use.examples


def test_a_rule_names_its_examples_and_the_prompt_shows_which_rule_they_break(
    team: Workbench,
) -> None:
    examples = (RuleExample(case_id="pump-1"), RuleExample(case_id="pump-2", breaks=False))
    told = content(CURRENCY.model_copy(update={"examples": examples}), example_cases=())
    team.judge.draft(ADA, "prices 1", told)
    brief = team.audits.brief(
        ADA, priced_case(5), team.settings.model_copy(update={"judge": "prices 1"})
    )
    assert brief is not None
    assert [(example.case_id, example.rule, example.breaks) for example in brief.examples] == [
        ("pump-1", "currency", True),
        ("pump-2", "currency", False),
    ]
    assert brief.examples[0].reason == "read pump 1"
    assert team.judge.examples(ADA, "prices 1") == brief.examples


def test_the_offline_critic_follows_the_checks_without_a_model(team: Workbench) -> None:
    team.judge.draft(ADA, "short 1", content(SHORT))
    team.judge.adopt(ADA, "short 1")
    run = team.audits.audit(ADA, priced_case(2), settings=Settings())
    assert run.original is not None
    [issue] = [issue for issue in run.original.issues if issue.rule == "house_short"]
    assert issue.severity == "high"
    assert run.needs_review
    assert run.judge is not None
    assert run.judge.examples == (), "only a model reads examples"


def test_a_run_records_its_judge_and_exams_and_guarantees_are_of_another_auditor(
    team: Workbench,
) -> None:
    offline = Settings()
    before = team.audits.audit(ADA, priced_case(2), settings=offline)
    passed = team.exams.status("offline").passed
    version = team.judge.draft(ADA, "short 1", content(SHORT))
    team.judge.adopt(ADA, "short 1")
    after = team.audits.audit(ADA, priced_case(2), settings=offline)
    assert after.judge is not None
    assert (after.judge.id, after.judge.name) == (version.id, "short 1")
    assert after.versions.judge == version.digest
    assert after.versions.flat()["judge"] == version.digest
    assert after.settings["judge"] == version.pinned
    assert after.auditor != before.auditor
    assert after.acceptance.unexamined
    assert passed
    assert not team.exams.status("offline").passed, "the exam was taken without these rules"
    team.judge.retire(ADA, "short 1")
    again = team.audits.audit(ADA, priced_case(2), settings=offline)
    assert again.auditor == before.auditor
    assert again.judge is None
    assert "judge" not in again.settings, "as before there were judge versions"
    assert team.exams.status("offline").passed


def test_a_draft_is_used_only_by_audits_that_name_it(team: Workbench) -> None:
    version = team.judge.draft(ADA, "short 1", content(SHORT))
    case, named = priced_case(2), Settings(judge="short 1")
    assert team.audits.audit(ADA, case, settings=Settings()).judge is None
    assert team.audits.is_needed(case, named)
    team.audits.audit(ADA, case, settings=named)
    assert not team.audits.is_needed(case, named)
    assert not team.audits.is_needed(case, Settings(judge=version.id))
    # A changed draft is another judge, and what the run was told stays on record.
    team.judge.change(ADA, "short 1", content(SHORT, CURRENCY))
    assert team.audits.is_needed(case, named)
    assert not team.audits.is_needed(case, Settings(judge=version.pinned))
    assert team.store.judges.content(version.id, version.digest) == content(SHORT)
    team.judge.adopt(ADA, "short 1")
    assert team.audits.audit(ADA, case, settings=Settings(judge=DEFAULT_JUDGE)).judge is None


def test_an_audit_outside_of_a_database_says_that_it_has_no_judge_version() -> None:
    import masis

    with pytest.raises(SettingsError, match="outside of one"):
        masis.run_audit(priced_case(0), Settings(judge="prices 1"))


def test_adopting_a_version_retires_the_one_before_and_is_a_record_of_the_chain(
    team: Workbench,
) -> None:
    first = team.judge.draft(ADA, "a", content(SHORT))
    second = team.judge.draft(Actor(name="Lea"), "b", content(CURRENCY), based_on="a")
    team.judge.adopt(ADA, "a")
    adopted = team.judge.adopt(Actor(name="Lea"), "b")
    assert (adopted.state, adopted.decided_by, adopted.author) == ("adopted", "Lea", "Lea")
    assert team.judge.get(ADA, "a").state == "retired"
    assert team.judge.find_adopted(ADA) == adopted
    team.judge.retire(ADA, "b")
    assert team.judge.find_adopted(ADA) is None
    records = [record.judge for *_, record in team.store.team.history(JudgeAdoption)]
    assert records == [first.id, second.id, ""]
    assert team.judge.adopt(ADA, "a").state == "adopted", "a retired one can come back"


def test_what_is_adopted_dropped_or_retired_cannot_be_changed(team: Workbench) -> None:
    for name in ("a", "b"):
        team.judge.draft(ADA, name, content(SHORT))
    team.judge.adopt(ADA, "a")
    team.judge.drop(ADA, "b")
    for name in ("a", "b"):
        with pytest.raises(Conflict, match="can't be changed"):
            team.judge.change(ADA, name, content(CURRENCY))
    with pytest.raises(Conflict, match="is dropped"):
        team.judge.adopt(ADA, "b")
    with pytest.raises(Conflict, match="is adopted"):
        team.judge.drop(ADA, "a")
    with pytest.raises(Conflict, match="already"):
        team.judge.draft(ADA, "A", content(SHORT))
    with pytest.raises(UnknownRecord):
        team.judge.get(ADA, "c")


def test_a_content_that_cannot_be_used_is_refused_with_the_reason(team: Workbench) -> None:
    lookahead = SHORT.model_copy(
        update={"force": "must_not", "check": CodeCheck(kind="pattern", text="(?=a)")}
    )
    held = f"pump-{HELD_OUT[0]}"
    team.cases.add_one(ADA, case_of("It is [1].", {"1": "It is."}, case_id="undecided"))
    for told, problem in (
        (content(lookahead), "regular expression"),
        (content(example_cases=("undecided",)), "isn't a decided case"),
        (content(example_cases=("no-case",)), "isn't a decided case"),
        (content(example_cases=(held,)), "is held out"),
        (
            content(CURRENCY.model_copy(update={"examples": (RuleExample(case_id=held),)})),
            "held out",
        ),
        (content(critic="dspy:nothing"), "can't be the critic"),
    ):
        with pytest.raises(InputError, match=problem):
            team.judge.draft(ADA, "prices 1", told)
    with pytest.raises(InputError, match="means the default judge"):
        team.judge.draft(ADA, "None", content(SHORT))
    team.judge.draft(ADA, "empty", JudgeContent())
    with pytest.raises(InputError, match="tells the judge nothing"):
        team.judge.adopt(ADA, "empty")


def test_a_case_that_is_open_again_is_neither_shown_nor_sent_as_an_example(team: Workbench) -> None:
    examples = (RuleExample(case_id="pump-1"), RuleExample(case_id="pump-2", breaks=False))
    rule = CURRENCY.model_copy(update={"examples": examples})
    version = team.judge.draft(ADA, "prices 1", content(rule, example_cases=("pump-3",)))
    settings = team.settings.model_copy(update={"judge": "prices 1"})
    for case_id in ("pump-1", "pump-3"):
        undone(team, case_id, "Ada")
    reader = Actor(name="Ben")
    for seen in (team.judge.get(reader, "prices 1"), *team.judge.versions(reader)):
        assert seen.content.all_example_cases == ("pump-2",)
        assert seen.digest == version.digest, "the digest is of the whole content"
    assert [example.case_id for example in team.judge.examples(reader, "prices 1")] == ["pump-2"]
    brief = team.audits.brief(ADA, priced_case(5), settings)
    assert brief is not None
    assert brief.use.examples == ("pump-2",)


def test_a_shared_case_is_no_example_before_all_have_decided(team: Workbench) -> None:
    team.team.put_in_force(ADA, QueuePolicy(reviewers=2, machine="after"))
    shared = priced_case(0).model_copy(update={"id": "shared"})
    team.cases.add_one(ADA, shared)
    team.audits.audit(ADA, shared, settings=Settings())
    decide(team, "shared", "approve", "Ada", iteration=1)
    with pytest.raises(InputError, match="isn't a decided case"):
        team.judge.draft(ADA, "prices 1", content(CURRENCY, example_cases=("shared",), held_out=()))
    decide(team, "shared", "approve", "Ben", iteration=1)
    team.judge.draft(ADA, "prices 1", content(CURRENCY, example_cases=("shared",), held_out=()))


def test_an_escalation_and_a_decision_about_a_revision_are_no_examples(team: Workbench) -> None:
    decide(team, "pump-1", "escalate", "Ada", iteration=1)
    assert team.store.judges.decided_among(["pump-1", "pump-2"]) == {"pump-2"}
    revised = Case.model_validate(bridge("revised"))
    team.cases.add_one(ADA, revised)
    run = team.audits.audit(ADA, revised, settings=Settings())
    assert run.total_iterations > 1
    decide(team, "revised", "approve", iteration=2)
    assert team.cases.open("revised").state == "approved"
    # The judged answer isn't the one that the case came with.
    assert team.store.judges.decided_among(["revised"]) == frozenset()


def test_a_redacted_case_leaves_every_prompt(team: Workbench) -> None:
    team.judge.draft(ADA, "prices 1", content(CURRENCY, example_cases=("pump-1", "pump-2")))
    settings = team.settings.model_copy(update={"judge": "prices 1"})
    team.reviews.redact_case(ADA, "pump-1", "asked")
    brief = team.audits.brief(ADA, priced_case(5), settings)
    assert brief is not None
    assert brief.use.examples == ("pump-2",)


def test_the_story_of_a_run_and_an_export_name_the_judge_version(
    team: Workbench, tmp_path: Path
) -> None:
    version = team.judge.draft(ADA, "short 1", content(SHORT))
    team.judge.adopt(ADA, "short 1")
    run = team.audits.audit(ADA, priced_case(2), settings=Settings())
    [row] = [row for row in story(run, 0) if row.title == "House rules"]
    assert row.lines == [f"Judge version short 1 ({version.digest}), no examples."]
    decide(team, "pump-2", "approve", iteration=1)
    file = tmp_path / "decided.jsonl"
    team.exports.write_file(ADA, file, "decided")
    manifest = json.loads(next(tmp_path.glob("*manifest*")).read_text(encoding="utf-8"))
    audited_with = manifest["provenance"]["audited_with"]
    assert audited_with["judge"] == {version.digest: 1}
    assert version.digest in file.read_text(encoding="utf-8")


def test_only_leads_write_and_adopt_versions(team: Workbench) -> None:
    guarded = JudgeService(team.store, team.settings, SIGN_IN_REQUIRED)
    reviewer = Actor(name="Ben", roles=("reviewer",), authenticated=True)
    lead = Actor(name="Lea", roles=("lead",), authenticated=True)
    told = content(severities=(SeverityRule(type="outdated", severity="low"),))
    for act in (
        lambda: guarded.draft(reviewer, "a", told),
        lambda: guarded.adopt(reviewer, "a"),
    ):
        with pytest.raises(NotAllowed, match="lead role"):
            act()
    guarded.draft(lead, "a", told)
    guarded.adopt(lead, "a")
    assert [version.name for version in guarded.versions(reviewer)] == ["a"]


def test_examples_are_searched_in_one_pass_over_the_index(team: Workbench) -> None:
    plan = team.store.database.execute(
        f"EXPLAIN QUERY PLAN {WITH_SIMILAR_WORDS}", ['query : "price"', '["pump-1"]', 9]
    )
    [scan] = [
        row["detail"]
        for row in plan
        if "VIRTUAL TABLE" in row["detail"] and "words" in row["detail"]
    ]
    assert "=" not in scan, "a search for each rowid"


def test_the_cost_of_a_trial_is_known_before_it_starts(
    team: Workbench, server: ModelServer
) -> None:
    team.judge.draft(ADA, "prices 1", content(CURRENCY, ROUNDING))
    server.requests.clear()
    ids = [f"pump-{number}" for number in HELD_OUT]
    default = team.judge.estimate(ADA, DEFAULT_JUDGE, ids)
    trial = team.judge.estimate(ADA, "prices 1", ids)
    assert trial.calls == default.calls == len(ids)
    assert trial.tokens > default.tokens
    assert not server.requests
    asked = audited(team, HELD_OUT[0], "prices 1").usage
    assert 0 < asked.prompt_tokens + asked.completion_tokens <= trial.tokens / len(ids) * 1.2
