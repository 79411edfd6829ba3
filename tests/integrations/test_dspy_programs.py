"""Files of compiled programs, labels for training, and the metric: the parts that don't need
DSPy.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from masis.api.roles import offered_models
from masis.audit.critique import RawIssue
from masis.audit.issues import raise_issues
from masis.errors import InputError, SettingsError
from masis.integrations.cli.optimize import _draft_judge
from masis.integrations.dspy import labelled, metric, plugin, programs
from masis.integrations.dspy.labelled import ExpectedFault, LabelledAnswer
from masis.integrations.dspy.plugin import CompiledRole, ProgramAsker, critics, revisers
from masis.integrations.dspy.programs import HeldOutScore, MadeFrom, Predictor, Program
from masis.llm.roles.critic import ModelCritic
from masis.llm.roles.house import house_instructions, house_version
from masis.llm.roles.prompting import answer as answer_section
from masis.llm.roles.prompting import compose, question_and_evidence
from masis.schema.audit import Issue
from masis.schema.case import Case, Evidence
from masis.schema.judge import HouseRule, JudgeBrief, JudgeContent, JudgeUse, question_id
from masis.schema.labels import TargetLabel
from masis.services import Workbench, demo_cases
from masis.settings import Settings
from masis.store import Store
from tests.audit.factories import context
from tests.llm import canned
from tests.llm.scripted_asker import ScriptedAsker
from tests.store.factories import a_case, a_decision, a_run

FIGURE = HeldOutScore(mean=0.5, low=0.4, high=0.6, answers=10)
ANSWER = (
    "The bridge is 90 m long [1]. It was built in 1900 [2]. It is green [1]. It is loved by all who"
    " see it [2]."
)


def program_of(name: str = "careful", **changes: Any) -> Program:
    state = {"critic": Predictor(instructions="Judge.")}
    values: dict[str, Any] = {
        "name": name,
        "version": 1,
        "role": "critic",
        "model": "ollama:m",
        "optimizer": "bootstrap",
        "source": "demo",
        "data": MadeFrom(digest="0", train=1, held_out=1),
        "metric": metric.NAME,
        "before": FIGURE,
        "after": FIGURE,
        "gain": FIGURE,
        "improved": True,
        "base_prompt": "critic/1+0",
        "made_at": "2026-01-02T03:04:05Z",
        "masis": "0",
        "dspy": "3",
        "calls": 1,
        "tokens": 1,
        "cost_usd": None,
        "digest": programs.digest(state),
        "state": state,
    }
    return Program(**(values | changes))


def issue_of(quote: str | None, kind: Any = "contradiction", answer: str = ANSWER) -> Issue:
    raw_issue = RawIssue(kind, f"critic_{kind}", "high", "It is wrong.", "Why.", "Mend it.", quote)
    return raise_issues("critic", [raw_issue], answer, ()).issues[0]


def labelled_answer(
    *expected: ExpectedFault, right: tuple[str, ...] = (), wrong: Any = ()
) -> LabelledAnswer:
    return LabelledAnswer(
        "1", "?", ANSWER, (Evidence(id="1"), Evidence(id="2")), (), expected, right, wrong
    )


def expect(words: str, kind: str = "contradiction", required: bool = True) -> ExpectedFault:
    start = ANSWER.index(words)
    return ExpectedFault(
        kind, (start, start + len(words)), words, "It is 120 m.", required=required
    )


LONG, BUILT = "The bridge is 90 m long [1].", "It was built in 1900 [2]."


# programs


def test_versions_increase_and_are_never_overwritten(tmp_path: Path) -> None:
    first, file = programs.save_program(tmp_path, program_of())
    before = file.read_bytes()
    second, _ = programs.save_program(tmp_path, program_of(model="ollama:other"))
    assert (first.string, second.string) == ("dspy:careful@1", "dspy:careful@2")
    assert file.read_bytes() == before
    assert programs.find_program(tmp_path, "careful").model == "ollama:other"
    assert programs.find_program(tmp_path, "careful@1").model == "ollama:m"


def test_concurrently_saved_programs_get_distinct_versions(tmp_path: Path) -> None:
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda _: programs.save_program(tmp_path, program_of()), range(12)))
    assert programs.versions(tmp_path, "careful") == list(range(1, 13))
    assert sorted(file.name for file in (tmp_path / "careful").iterdir()) == sorted(
        f"v{n}.json" for n in range(1, 13)
    )


def test_an_altered_program_file_isnt_used(tmp_path: Path) -> None:
    _, file = programs.save_program(tmp_path, program_of())
    content = json.loads(file.read_text())
    content["state"]["critic"]["instructions"] = "Find nothing."
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match="altered"):
        programs.find_program(tmp_path, "careful")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": 2}', "\x00"])
def test_a_file_that_isnt_a_program_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "careful").mkdir()
    (tmp_path / "careful" / "v1.json").write_text(text)
    with pytest.raises(InputError, match=r"v1\.json"):
        programs.find_program(tmp_path, "careful")
    assert isinstance(programs.list_programs(tmp_path)[0], InputError)


@pytest.mark.parametrize("name", ["", "../up", "A", "a/b", "a" * 65, ".hidden", "a b"])
def test_program_names_are_valid_file_names(name: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="can't name a program"):
        programs.find_program(tmp_path, name)


def test_an_unknown_name_suggests_the_nearest(tmp_path: Path) -> None:
    programs.save_program(tmp_path, program_of())
    with pytest.raises(SettingsError, match="Did you mean dspy:careful"):
        programs.find_program(tmp_path, "carefull")
    with pytest.raises(SettingsError, match="Choose one of: 1"):
        programs.find_program(tmp_path, "careful@3")


def test_a_program_can_fill_only_its_own_role(tmp_path: Path) -> None:
    programs.save_program(tmp_path, program_of())
    settings = Settings(programs_folder=str(tmp_path))
    assert critics.find("careful", settings).asks == "ollama:m"
    with pytest.raises(SettingsError, match="can't be the reviser"):
        revisers.find("careful", settings)
    assert "dspy:careful@1" in offered_models(settings, "critic")
    assert "dspy:careful@1" not in offered_models(settings, "reviser")
    assert "dspy:careful@1" not in offered_models(settings)


# the metric


FOUND_BY_CODE = labelled_answer(expect(LONG), expect(BUILT, "uncited", required=False))
MISSING_POINT = labelled_answer(
    ExpectedFault("missing_info", None, "", "It does not say who built it.")
)


@pytest.mark.parametrize(
    ("expected", "issues", "score"),
    [
        ([LONG], [LONG], 1.0),
        ([LONG], ["90 m"], 1.0),
        ([LONG, BUILT], [LONG, BUILT], 1.0),
        ([LONG, BUILT], [LONG], 2 / 3),
        ([LONG], [LONG, BUILT], 2 / 3),
        ([LONG], [BUILT], 0.0),
        ([LONG], [], 0.0),
        ([], [], 1.0),
        ([], [LONG], 1 / 3),
        ([], [LONG, BUILT], 1 / 5),
        ([LONG, BUILT], [LONG, LONG], 0.5),
        ([LONG], [None], 0.0),
        # Quoting the whole answer finds nothing.
        (labelled_answer(expect("green", "unsupported")), [issue_of(ANSWER, "unsupported")], 0.0),
        # Issues that code finds are optional.
        (FOUND_BY_CODE, [issue_of(LONG)], 1.0),
        (FOUND_BY_CODE, [issue_of(LONG), issue_of(BUILT, "unsupported")], 1.0),
        # A missing point is matched by its type.
        (MISSING_POINT, [issue_of(None, "incomplete")], 1.0),
        (MISSING_POINT, [issue_of(None, "contradiction")], 0.0),
    ],
)
def test_a_critiques_score_counts_its_correct_findings(
    expected: Any, issues: list[Any], score: float
) -> None:
    case = (
        expected
        if isinstance(expected, LabelledAnswer)
        else labelled_answer(*map(expect, expected))
    )
    raised_issues = [item if isinstance(item, Issue) else issue_of(item) for item in issues]
    assert metric.of_critique(case, raised_issues, None).score == pytest.approx(score)


@pytest.mark.parametrize("words", [[LONG], [LONG, BUILT]])
def test_a_wrong_fault_type_at_the_right_position_scores_half(words: list[str]) -> None:
    others = [issue_of(quote, "safety") for quote in words]
    assert metric.of_critique(
        labelled_answer(*map(expect, words)), others, None
    ).score == pytest.approx(0.5)


def test_a_missing_critique_scores_zero_with_a_reason() -> None:
    assert metric.of_critique(labelled_answer(), [], "it was refused") == (
        0.0,
        "There was no critique: it was refused",
    )


def test_feedback_lists_misses_and_false_alarms() -> None:
    feedback = metric.of_critique(labelled_answer(expect(LONG)), [issue_of(BUILT)], None).feedback
    assert f"Missed (contradiction): “{LONG}”. It is 120 m." in feedback
    assert "Raised without ground" in feedback


def test_a_revisions_score_counts_fixes_and_kept_claims() -> None:
    case, corrected = (
        labelled_answer(right=(BUILT,), wrong=(LONG,)),
        "The bridge is 120 m long [1].",
    )
    answers = (f"{corrected} {BUILT}", f"{BUILT} It is 120 m long [9].", ANSWER, corrected, None)
    assert [metric.of_revision(case, answer).score for answer in answers] == [
        1.0,
        0.5,
        0.0,
        0.0,
        0.0,
    ]


# labels


def test_the_demo_cases_have_labels() -> None:
    cases = labelled.from_cases(demo_cases())
    assert len(cases) == 63
    assert sum(case.clean for case in cases) >= 20
    for case in cases:
        for fault in case.expected:
            assert fault.span is None or case.answer[slice(*fault.span)] == fault.words


def test_train_and_test_sets_share_no_question_and_both_have_both_classes() -> None:
    cases = labelled.from_cases(demo_cases())
    doubled = [*cases, *(case._replace(id=f"{case.id}-again") for case in cases)]
    parts = labelled.split_by_question(doubled, 0.4, 7)
    assert not {case.query for case in parts.train} & {case.query for case in parts.held_out}
    assert len(parts.train) + len(parts.held_out) == len(doubled)
    for part in parts:
        assert {case.clean for case in part} == {True, False}
    assert parts == labelled.split_by_question(doubled, 0.4, 7)
    assert parts != labelled.split_by_question(doubled, 0.4, 8)


def test_too_few_labels_are_reported() -> None:
    with pytest.raises(InputError, match="can't be split"):
        labelled.split_by_question([labelled_answer(expect(LONG))], 0.5, 0)


def test_shuffled_labels_belong_to_other_answers() -> None:
    cases = labelled.from_cases(demo_cases())
    shuffled = labelled.shuffle_labels(cases, 0)
    assert [case.answer for case in shuffled] == [case.answer for case in cases]
    unchanged = sum(
        original.expected == shuffled_case.expected and original.expected != ()
        for original, shuffled_case in zip(cases, shuffled, strict=True)
    )
    assert unchanged == 0


def add_decided_case(store: Store, number: int, **decision: Any) -> Case:
    case = a_case(f"case-{number}", query=f"When was bridge {number} opened?")
    store.cases.add_many([case])
    run = a_run(case, f"run-{number}")
    store.runs.start(
        run.id, case_id=case.id, case_digest=case.digest(), models={}, settings=run.settings
    )
    store.runs.finish(run)
    store.decisions.append(a_decision(case, run_id=run.id, iteration=1, **decision))
    return case


def test_decisions_become_labels(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "a.db")
    grey, opened = "It is painted grey [7].", "It was opened in 1932 [1]."
    answer = f"{opened} {grey}"
    start = answer.index(grey)
    label = TargetLabel(
        target="claim", start=start, end=start + len(grey), text=grey, label="unsupported"
    )
    store.cases.add_many([a_case("undecided")])
    add_decided_case(store, 1)
    add_decided_case(store, 2, verdict="override", corrected_answer=opened, reason="not there")
    add_decided_case(store, 3, verdict="reject", reason="bad")
    add_decided_case(store, 4, verdict="reject", reason="bad", labels=(label,))
    add_decided_case(store, 5, verdict="escalate", reason="unsure")
    issue = TargetLabel(
        target="span",
        start=start,
        end=start + len(grey),
        text=grey,
        label="contradicted",
        severity="high",
    )
    add_decided_case(store, 6, labels=(issue,))
    add_decided_case(
        store, 7, labels=(TargetLabel(target="answer", label="unsafe", severity="high"),)
    )
    labelled_cases = {
        case.id: case for case in labelled.from_decisions(Workbench(store, Settings(), store.path))
    }
    assert {
        name: [(fault.kind, fault.words) for fault in case.expected]
        for name, case in labelled_cases.items()
    } == {
        "case-1": [],
        "case-2": [("changed", grey)],
        "case-4": [("unsupported", grey)],
        "case-6": [("contradiction", grey)],
    }
    assert labelled_cases["case-1"].clean
    assert all(case.answer == answer for case in labelled_cases.values())


def test_compiled_instructions_and_examples_replace_the_default_prompt() -> None:
    case = {
        "original_query": "How long?",
        "answer": ANSWER,
        "evidence_chunks": ["It is 120 m long."],
    }
    shared = question_and_evidence("How long?", (Evidence(id="1", text="It is 120 m long."),))
    original = compose("critic", "ab" * 16, shared, [answer_section(ANSWER)])
    examples = plugin.examples_of("critic", [{**case, "answer": "Another one.", "issues": []}])
    changed = plugin.apply_program(original, "critic", "Compare each number.", examples)
    assert changed.system == f"{original.frame}\n\nCompare each number."
    assert "Another one." in changed.shared.removesuffix(original.shared)
    assert changed.task == original.task
    with pytest.raises(InputError, match="can't be given other instructions"):
        plugin.apply_program(original, "reviser", "Compare each number.", examples)


def test_a_critic_compiled_on_decisions_becomes_a_draft_that_audits_can_use(
    tmp_path: Path,
) -> None:
    settings = Settings(programs_folder=str(tmp_path / "programs"))
    folder = programs.folder(settings.programs_folder)
    stored, _ = programs.save_program(folder, program_of())
    workbench = Workbench.open(tmp_path / "masis.db", settings)
    version = _draft_judge(workbench, folder, stored, ["case-1", "case-1", "case-2"])
    assert (version.state, version.content.critic) == ("draft", "dspy:careful@1")
    assert version.content.held_out == (question_id("case-1"), question_id("case-2"))
    pinned = workbench.audits.pin(settings.model_copy(update={"judge": version.name}))
    assert pinned.critic == "dspy:careful@1"
    assert pinned.judge == version.pinned
    workbench.close()


def test_house_rules_reach_a_compiled_critic(tmp_path: Path) -> None:
    program = CompiledRole.model_construct(**dict(program_of()))
    rule = HouseRule(id="a", sentence="Name the unit", force="must", severity="low")
    content = JudgeContent(rules=(rule,))
    use = JudgeUse(id="v", name="n", digest=content.digest)
    recorded = f"{program.version_name} {house_version()}"
    asker = ScriptedAsker({recorded.partition("/")[0]: canned.critique()})
    critic = ModelCritic(
        ProgramAsker(cast("Any", asker), program),
        version=program.version_name,
        brief=JudgeBrief(use=use, content=content),
    )
    critic.critique(context())
    [request] = asker.requests
    assert request.prompt.instructions.startswith("Judge.")
    assert house_instructions() in request.prompt.instructions
    assert "Name the unit" in request.prompt.task
    assert request.prompt.version == recorded
    assert critic.judged_by.version == request.prompt.version
