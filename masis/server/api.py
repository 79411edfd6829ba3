"""The endpoints of the JSON API. Each calls the service that pages and commands call, which decides
about permissions, blindness, leases, versions and limits.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from masis import version
from masis.datasets.exports.export import Selection
from masis.datasets.exports.formats import export_formats
from masis.errors import InputError, ResultsHidden, UnknownRecord
from masis.schema.actor import PERMISSIONS
from masis.schema.batches import Batch
from masis.schema.case import case_of
from masis.schema.codebook import Codebook, FailureMode
from masis.schema.comparison import SystemComparison
from masis.schema.judge import JudgeExample, JudgeVersion
from masis.schema.judge_trials import DecidedSplit
from masis.schema.minimal_evidence import MinimalEvidence
from masis.schema.review import LogEntry
from masis.schema.run import Run
from masis.schema.systems import System, SystemDetails, checked_name
from masis.schema.team import Lease
from masis.schema.tokens import ApiToken
from masis.server.endpoints import ApiCall, File, endpoint
from masis.server.http import error_object
from masis.services import api_records as records
from masis.services.access import ADD_CASES, RUN_AUDITS
from masis.services.batch_actions import BatchRequest
from masis.services.batches import BatchPreview
from masis.services.cases import RESULTS_HIDDEN
from masis.services.judge.alignment import (
    CHOOSE_CASES,
    TRY_VERSIONS,
    AlignmentReport,
    JudgeComparison,
    RunningTrial,
    TrialPlan,
)
from masis.services.judge.proposals import RuleProposal
from masis.services.judge.versions import ADOPT_VERSIONS, WRITE_VERSIONS
from masis.services.minimal_evidence import VERIFY_WITHOUT_PASSAGES
from masis.services.modes.service import (
    ADD_MODES,
    APPLY_CODES,
    CHANGE_CODEBOOK,
    CodedBatch,
    CodingPreview,
    GroupProposal,
    ModeCount,
)
from masis.services.preferences import DECIDE as DECIDE_PREFERENCES
from masis.services.preferences import NewPreference, PreferencePage, RecordedPreference
from masis.services.queues import SET_UP_QUEUES, QueueFigures, QueuePreview
from masis.services.records import (
    CasePage,
    DatasetVersion,
    ObservationPage,
    ReviewDraft,
    ReviewQueue,
    RunSummary,
)
from masis.services.systems import DESCRIBE_SYSTEMS

MEDIA_TYPES = {".jsonl": "application/x-ndjson", ".json": "application/json", ".csv": "text/csv"}
"""Media types of exported files by suffix; every other file is ``application/octet-stream``."""


@endpoint("GET", "/me", "read", "see pages, figures and reports")
def me(call: ApiCall) -> records.Me:
    """Return who the request acts for, and what they may do."""
    access = call.workbench.access
    return records.Me(
        name=call.actor.name,
        roles=call.actor.roles,
        permissions=tuple(
            permission for permission in PERMISSIONS if access.allows(call.actor, permission)
        ),
        sign_in=access.sign_in,
        machine_shown=call.workbench.store.team.strictest_shown(),
        app_version=version.APP,
    )


# Cases


@endpoint(
    "GET",
    "/cases",
    "read",
    "see pages, figures and reports",
    example={"waiting": True, "order": "risk", "size": 20},
)
def list_cases(call: ApiCall, query: records.CaseQuery) -> CasePage:
    """List cases with the queue's filters and orders, one page at a time."""
    case_filter = query.case_filter()
    if query.waiting:
        call.workbench.queues.require_member(call.actor, case_filter.queue)
        case_filter = call.workbench.team.open_to(call.actor, case_filter)
    return call.workbench.cases.find_for(call.actor, case_filter)


@endpoint(
    "POST",
    "/cases",
    "audit",
    ADD_CASES,
    example={
        "cases": [
            {
                "id": "bridge",
                "query": "How long is it?",
                "answer": "Ten metres [1].",
                "evidence": [{"id": "1", "text": "It is ten metres long."}],
            }
        ]
    },
)
def add_cases(call: ApiCall, body: records.NewCases) -> records.AddedCases:
    """Add cases. A case that is stored with other content is a conflict; the others are added."""
    cases = [case_of(case, f"cases[{number}]") for number, case in enumerate(body.cases)]
    if body.system is not None:
        system = checked_name(body.system)
        cases = [case.as_answer_of(system) for case in cases]
    added = call.workbench.cases.add(call.actor, cases)
    return records.AddedCases(
        added=added.added,
        unchanged=added.unchanged,
        conflicts=tuple(
            records.CaseProblem(case=conflict.case, message=str(conflict))
            for conflict in added.conflicts
        ),
    )


@endpoint("GET", "/cases/{case:path}", "read", "see pages, figures and reports")
def show_case(call: ApiCall) -> records.CaseDetail:
    """Return a case with its newest audit and its log, limited to what this person may see."""
    return records.CaseDetail.of(call.desk.show(call.path["case"]))


@endpoint("PUT", "/cases/{case:path}/lease", "decide", "take or release cases")
def take_case(call: ApiCall) -> Lease:
    """Take a case for decision, or extend the lease on it."""
    return call.workbench.team.claim(call.actor, call.path["case"])


@endpoint("DELETE", "/cases/{case:path}/lease", "decide", "take or release cases")
def release_case(call: ApiCall) -> records.Done:
    """Give back a case that was taken for decision."""
    call.workbench.team.release(call.actor, call.path["case"])
    return records.Done()


@endpoint("POST", "/queue/next", "decide", "take or release cases", example={"order": "risk"})
def take_next(call: ApiCall, body: records.NextCase) -> Lease | None:
    """Take the next case of a queue that this person may decide; ``null`` if there is none."""
    case_filter = records.CaseQuery(**body.model_dump(exclude={"after"})).case_filter()
    return call.workbench.team.claim_next(call.actor, case_filter, body.after)


@endpoint("POST", "/cases/{case:path}/skip", "decide", "skip cases")
def skip_case(call: ApiCall) -> records.Changed:
    """Leave a case undecided. It comes last for this person."""
    entries = call.workbench.team.skip(call.actor, [call.path["case"]])
    return records.Changed(cases=len(entries))


# Decisions


@endpoint(
    "POST",
    "/cases/{case:path}/decisions",
    "decide",
    "decide cases",
    example={"verdict": "reject", "reason": "unsupported", "token": "chosen-by-the-client"},
)
def decide(call: ApiCall, body: records.NewDecision) -> LogEntry:
    """Decide an answer of a case."""
    return call.desk.decide(call.path["case"], **_arguments(body))


@endpoint(
    "POST",
    "/cases/{case:path}/adjudication",
    "oversee",
    "adjudicate cases",
    example={"verdict": "reject", "reason": "contradicted"},
)
def adjudicate_case(call: ApiCall, body: records.NewVerdict) -> LogEntry:
    """Give the final verdict on a case of several reviewers."""
    return call.desk.adjudicate(call.path["case"], **_arguments(body))


@endpoint(
    "POST",
    "/cases/{case:path}/labels",
    "decide",
    "decide cases",
    example={"labels": [{"text": "It was opened in 1932", "label": "supported"}]},
)
def add_labels(call: ApiCall, body: records.NewLabels) -> LogEntry:
    """Add labels to this person's decision on a case."""
    return call.desk.label(
        call.path["case"],
        [label.record() for label in body.labels],
        acknowledge=body.acknowledge,
        acknowledge_citations=body.acknowledge_citations,
    )


@endpoint("POST", "/decisions/{entry}/undo", "decide", "undo own decisions or auto-acceptances")
def undo(call: ApiCall) -> LogEntry:
    """Undo one entry of the decision log by another one."""
    return call.desk.undo(call.path["entry"])


@endpoint("GET", "/decisions", "read", "see pages, figures and reports", example={"limit": 10})
def list_log(call: ApiCall, query: records.LogQuery) -> tuple[LogEntry, ...]:
    """List the newest entries of the decision log that this person may see."""
    return call.desk.log(query.case, limit=query.limit, text=query.text)


@endpoint(
    "POST",
    "/decisions",
    "decide",
    "decide cases",
    example={"rows": [{"case": "case-1", "verdict": "reject", "reason": "unsupported"}]},
)
def decide_rows(call: ApiCall, body: records.DecisionRows) -> tuple[records.RowResult, ...]:
    """Make several decisions one after another; a wrong row doesn't stop the others."""
    return tuple(
        records.RowResult(
            line=result.line,
            case=result.case,
            verdict=result.verdict,
            entry=result.entry,
            error=None if result.error is None else error_object(result.error),
            outcome=result.outcome,
            case_added=result.case_added,
        )
        for result in call.desk.decide_all(body.rows, dry_run=body.dry_run)
    )


def _arguments(body: records.NewDecision) -> dict[str, Any]:
    values = {name: getattr(body, name) for name in type(body).model_fields}
    return values | {"labels": [label.record() for label in body.labels]}


# Drafts


@endpoint("GET", "/drafts/{subject:path}", "read", "see pages, figures and reports")
def get_draft(call: ApiCall) -> ReviewDraft:
    """Return this person's draft on a subject, such as ``case:1``; it may be empty."""
    return call.workbench.drafts.get(call.actor, call.path["subject"])


@endpoint(
    "PUT",
    "/drafts/{subject:path}",
    "decide",
    "save drafts of decisions",
    example={"values": {"note": "Check the date."}},
)
def save_draft(call: ApiCall, body: records.DraftValues) -> ReviewDraft:
    """Save fields of this person's draft on a subject, and return the draft."""
    drafts, subject = call.workbench.drafts, call.path["subject"]
    drafts.save(call.actor, subject, body.values)
    return drafts.get(call.actor, subject)


@endpoint("DELETE", "/drafts/{subject:path}", "decide", "save drafts of decisions")
def discard_draft(call: ApiCall) -> records.Done:
    """Discard this person's draft on a subject."""
    call.workbench.drafts.clear(call.actor, call.path["subject"])
    return records.Done()


# Team


@endpoint(
    "POST",
    "/cases/{case:path}/comments",
    "decide",
    "comment on cases",
    example={"text": "The second source is newer."},
)
def comment(call: ApiCall, body: records.NewComment) -> LogEntry:
    """Add a comment to a case."""
    return call.desk.comment(call.path["case"], body.text)


@endpoint(
    "POST",
    "/assignments",
    "decide",
    "assign cases to oneself",
    example={"cases": ["case-1"], "names": ["reviewer"]},
)
def assign(call: ApiCall, body: records.Names) -> records.Changed:
    """Assign cases to reviewers, or take assignments back. Others' cases need the lead role."""
    changed = call.desk.assign(body.cases, body.names, remove=body.remove)
    return records.Changed(cases=changed)


@endpoint("POST", "/tags", "decide", "tag cases", example={"cases": ["case-1"], "names": ["dates"]})
def tag(call: ApiCall, body: records.Names) -> records.Changed:
    """Add tags to cases, or remove them."""
    return records.Changed(cases=call.desk.tag(body.cases, body.names, remove=body.remove))


# Named queues


@endpoint("GET", "/queues", "read", "see pages, figures and reports", example={"archived": True})
def list_queues(call: ApiCall, query: records.QueuesQuery) -> tuple[QueueFigures, ...]:
    """List the named queues with their figures for this person."""
    return call.desk.queues(archived=query.archived)


@endpoint(
    "POST",
    "/queues/preview",
    "read",
    "see pages, figures and reports",
    example={"cases": {"fields": ["Medicine"]}},
)
def preview_queue(call: ApiCall, body: records.QueueCases) -> QueuePreview:
    """Count the cases that filters would hold as a queue, and those in other queues too."""
    return call.desk.preview_queue(**body.filters())


@endpoint(
    "POST",
    "/queues",
    "oversee",
    SET_UP_QUEUES,
    example={"name": "Medical", "cases": {"fields": ["Medicine"]}},
)
def create_queue(call: ApiCall, body: records.NewQueue) -> ReviewQueue:
    """Create a queue with the cases that the filters match."""
    return call.desk.create_queue(body.name, **body.filters())


@endpoint(
    "PUT",
    "/queues/{queue}",
    "oversee",
    SET_UP_QUEUES,
    example={"policy": {"reviewers": 2, "machine": "after"}, "people": ["Ada", "Ben"]},
)
def change_queue(call: ApiCall, body: records.QueueChange) -> ReviewQueue:
    """Change a queue, named by its id: its name, filters, policy, people, or archive it."""
    return call.desk.change_queue(call.path["queue"], **body.changes())


# Systems


@endpoint("GET", "/systems", "read", "see pages, figures and reports")
def list_systems(call: ApiCall) -> tuple[System, ...]:
    """List the systems whose answers are stored, with their number of cases."""
    return call.workbench.systems.all(call.actor)


@endpoint(
    "POST",
    "/systems/{system:path}",
    "audit",
    DESCRIBE_SYSTEMS,
    example={"model": "gpt-4o-2024-08-06", "version": "2.1"},
)
def describe_system(call: ApiCall, body: SystemDetails) -> System:
    """Replace the model, prompt, version and date of a system."""
    return call.workbench.systems.describe(call.actor, call.path["system"], body)


@endpoint(
    "GET",
    "/compare",
    "read",
    "see pages, figures and reports",
    example={"systems": ["v1", "v2"]},
)
def compare_systems(call: ApiCall, query: records.ComparedSystems) -> tuple[SystemComparison, ...]:
    """Compare the first system with each of the others over the questions that all share."""
    return call.workbench.comparison.compare(call.actor, query.systems)


# Preferences


@endpoint("GET", "/preferences/next", "decide", DECIDE_PREFERENCES)
def next_pair(call: ApiCall) -> records.PairToDecide:
    """Return the next two answers to compare. Nothing in it names their systems."""
    return records.PairToDecide(
        task=call.workbench.preferences.next(call.actor),
        progress=call.workbench.preferences.progress(call.actor),
    )


@endpoint("POST", "/preferences/undo", "decide", DECIDE_PREFERENCES)
def undo_preference(call: ApiCall) -> RecordedPreference:
    """Undo your newest preference."""
    return call.workbench.preferences.undo(call.actor)


@endpoint(
    "POST",
    "/preferences/pairs/{pair}",
    "decide",
    DECIDE_PREFERENCES,
    example={"verdict": "left", "reason": "It names the dose."},
)
def decide_pair(call: ApiCall, body: records.PairVerdictRequest) -> RecordedPreference:
    """Record which of the two answers of a pair is better."""
    given = NewPreference(pair=call.path["pair"], **body.model_dump())
    return call.workbench.preferences.decide(call.actor, given)


@endpoint("GET", "/preferences/results", "read", "see pages, figures and reports")
def preference_results(call: ApiCall, query: records.ResultsQuery) -> records.PreferenceSummary:
    """Return win rates, strengths and agreement. Leads may ask for everyone's preferences."""
    found = call.workbench.preferences.results(call.actor, everyone=query.everyone)
    return records.PreferenceSummary.of(found)


@endpoint("GET", "/preferences", "read", "see pages, figures and reports")
def list_preferences(call: ApiCall, query: records.PreferenceQuery) -> PreferencePage:
    """List preferences on questions of which you have decided every pair."""
    return call.workbench.preferences.find(
        call.actor,
        systems=query.systems,
        disputed=query.disputed,
        everyone=query.everyone,
        page=query.page,
    )


# Failure modes


@endpoint(
    "GET",
    "/observations",
    "read",
    "see pages, figures and reports",
    example={"text": "dose", "kinds": ["note", "label"], "size": 20},
)
def list_observations(call: ApiCall, query: records.ObservationQuery) -> ObservationPage:
    """Search what people wrote about cases and what audits found, newest first."""
    return call.workbench.modes.search(call.actor, query.observation_filter())


@endpoint("GET", "/observations/groups", "read", "see pages, figures and reports")
def list_groups(call: ApiCall, query: records.GroupQuery) -> GroupProposal:
    """Propose groups of similar observations that have no code yet."""
    return call.workbench.modes.groups(call.actor, again=query.again)


@endpoint("GET", "/modes", "read", "see pages, figures and reports", example={"facet": "field"})
def list_modes(call: ApiCall, query: records.CountQuery) -> tuple[ModeCount, ...]:
    """Count the cases of each failure mode, by a property of the cases."""
    return call.workbench.modes.count_modes(call.actor, query.facet)


@endpoint("GET", "/modes/agreement", "read", "see pages, figures and reports")
def show_agreement(call: ApiCall) -> tuple[records.AgreedMode, ...]:
    """Return how far reviewers agree about each failure mode."""
    rows = call.workbench.modes.agreement(call.actor)
    return tuple(records.AgreedMode.of(row) for row in rows)


@endpoint("GET", "/codebook", "read", "see pages, figures and reports")
def show_codebook(call: ApiCall) -> Codebook:
    """Return the codebook of failure modes."""
    return call.workbench.modes.codebook(call.actor)


@endpoint(
    "POST",
    "/codebook",
    "oversee",
    CHANGE_CODEBOOK,
    example={"codebook": {"modes": [{"code": "wrong-unit", "name": "Wrong unit"}]}},
)
def import_codebook(call: ApiCall, body: records.NewCodebook) -> Codebook:
    """Add the modes of a codebook to the team's codebook."""
    text = body.codebook.model_dump_json()
    return call.workbench.modes.import_codebook(call.actor, text, replace=body.replace)


@endpoint(
    "POST",
    "/codebook/modes",
    "decide",
    ADD_MODES,
    example={"code": "wrong-name", "name": "Wrong name", "definition": "Names another person."},
)
def add_mode(call: ApiCall, body: FailureMode) -> Codebook:
    """Add a failure mode to the codebook."""
    return call.workbench.modes.add_mode(call.actor, body)


@endpoint(
    "PUT",
    "/codebook/modes",
    "oversee",
    CHANGE_CODEBOOK,
    example={"code": "wrong-date", "name": "Wrong day", "definition": "Names another day."},
)
def change_mode(call: ApiCall, body: FailureMode) -> Codebook:
    """Change the name, the definition, the examples or the parent of a failure mode."""
    return call.workbench.modes.change_mode(call.actor, body)


@endpoint(
    "POST",
    "/codebook/nest",
    "oversee",
    CHANGE_CODEBOOK,
    example={"codes": ["wrong-date"], "into": "wrong-figure"},
)
def nest_modes(call: ApiCall, body: records.MovedModes) -> Codebook:
    """Nest failure modes under another one, or move them to the top."""
    return call.workbench.modes.nest(call.actor, body.codes, body.into)


@endpoint(
    "POST",
    "/codebook/merge",
    "oversee",
    CHANGE_CODEBOOK,
    example={"codes": ["wrong-date"], "into": "wrong-figure"},
)
def merge_modes(call: ApiCall, body: records.MovedModes) -> Codebook:
    """Merge failure modes into another one."""
    if body.into is None:
        raise InputError("is missing", hint="Name the mode that stays.", field="into")
    return call.workbench.modes.merge(call.actor, body.codes, body.into)


@endpoint(
    "POST",
    "/cases/{case:path}/codes",
    "decide",
    APPLY_CODES,
    example={"codes": ["wrong-date"]},
)
def code_case(call: ApiCall, body: records.NewCode) -> LogEntry:
    """Apply failure modes to a case or to an observation in it, or remove them."""
    case_id, modes = call.path["case"], call.workbench.modes
    if body.remove:
        entry = modes.uncode(
            call.actor, case_id, body.codes, body.observation, coded_by=body.coded_by
        )
    else:
        entry = modes.code(call.actor, case_id, body.codes, body.observation)
    return call.workbench.reviews.shown_to(call.actor.name, entry)


@endpoint(
    "POST",
    "/codes/preview",
    "read",
    "see pages, figures and reports",
    example={"codes": ["wrong-date"], "observations": {"text": "date"}},
)
def preview_codes(call: ApiCall, body: records.CodesToPreview) -> CodingPreview:
    """Show what applying failure modes to all matching observations would change."""
    wanted = body.observations.observation_filter()
    return call.workbench.modes.preview(call.actor, body.codes, wanted)


@endpoint(
    "POST",
    "/codes",
    "decide",
    APPLY_CODES,
    example={"codes": ["wrong-date"], "cases": ["case-2"], "token": "chosen-by-the-client"},
)
def apply_codes(call: ApiCall, body: records.NewCodes) -> CodedBatch:
    """Apply failure modes to many observations or cases, as one batch."""
    if bool(body.observations) == bool(body.cases):
        raise InputError(
            "give either observations or cases", hint="Name one of both.", field="observations"
        )
    modes = call.workbench.modes
    if body.cases:
        return modes.apply_to_cases(call.actor, body.codes, body.cases, token=body.token)
    return modes.apply(call.actor, body.codes, body.observations, token=body.token)


# Judge versions


@endpoint("GET", "/judge/versions", "read", "see pages, figures and reports")
def list_judge_versions(call: ApiCall) -> tuple[JudgeVersion, ...]:
    """Return the versions of the judge's guidance, newest first."""
    return call.workbench.judge.versions(call.actor)


@endpoint("GET", "/judge/versions/{version}", "read", "see pages, figures and reports")
def show_judge_version(call: ApiCall) -> JudgeVersion:
    """Return a judge version by its id or its name."""
    return _version_in_path(call)


def _version_in_path(call: ApiCall) -> JudgeVersion:
    return call.workbench.judge.get(call.actor, call.path["version"])


@endpoint("GET", "/judge/versions/{version}/examples", "read", "see pages, figures and reports")
def list_judge_examples(call: ApiCall) -> tuple[JudgeExample, ...]:
    """Return the decided cases that the rules of a judge version name as examples."""
    return call.workbench.judge.examples(call.actor, call.path["version"])


@endpoint(
    "POST",
    "/judge/versions/{version}/estimate",
    "read",
    "see pages, figures and reports",
    example={"cases": ["case-1"]},
)
def estimate_judge_trial(call: ApiCall, body: records.CasesToTry) -> records.TrialCost:
    """Return the most that audits of cases by a judge version may need; audits nothing."""
    cost = call.workbench.judge.estimate(call.actor, call.path["version"], body.cases)
    return records.TrialCost(**cost._asdict())


@endpoint(
    "POST",
    "/judge/versions",
    "oversee",
    WRITE_VERSIONS,
    example={
        "name": "prices 1",
        "content": {
            "rules": [
                {
                    "id": "currency",
                    "sentence": "A price has its currency",
                    "force": "must",
                    "severity": "high",
                }
            ]
        },
    },
)
def add_judge_version(call: ApiCall, body: records.NewJudgeVersion) -> JudgeVersion:
    """Write a draft of the judge's guidance."""
    return call.workbench.judge.draft(
        call.actor, body.name, body.content, note=body.note, based_on=body.based_on
    )


@endpoint(
    "PUT",
    "/judge/versions/{version}",
    "oversee",
    WRITE_VERSIONS,
    example={"note": "after the pilot"},
)
def change_judge_version(call: ApiCall, body: records.ChangedJudgeVersion) -> JudgeVersion:
    """Change a draft of the judge's guidance."""
    return call.workbench.judge.change(
        call.actor, call.path["version"], body.content, new_name=body.name, note=body.note
    )


@endpoint(
    "POST",
    "/judge/decided-cases",
    "oversee",
    CHOOSE_CASES,
    example={"filters": {"blind_only": False}, "seed": 7},
)
def choose_decided_cases(call: ApiCall, body: records.NewDecidedSplit) -> DecidedSplit:
    """Choose the decided cases that measure the judge, and hold out half of their questions."""
    return call.workbench.alignment.choose(call.actor, body.filters, body.seed)


@endpoint("GET", "/judge/decided-cases", "read", "see pages, figures and reports")
def show_decided_cases(call: ApiCall) -> DecidedSplit | None:
    """Return the newest choice of decided cases; null if there is none."""
    return call.workbench.alignment.split(call.actor)


@endpoint(
    "GET",
    "/judge/alignment",
    "read",
    "see pages, figures and reports",
    example={"half": "held_out"},
)
def measure_judge(call: ApiCall, query: records.HalfQuery) -> AlignmentReport:
    """Compare the stored audits with people on one half of the chosen cases."""
    return call.workbench.alignment.measure(call.actor, _chosen_split(call), query.half)


@endpoint("GET", "/judge/proposals", "read", "see pages, figures and reports")
def propose_house_rules(call: ApiCall) -> tuple[RuleProposal, ...]:
    """Propose house rules from decisions that overruled the audit."""
    return call.workbench.alignment.propose_rules(call.actor, _chosen_split(call))


def _chosen_split(call: ApiCall) -> DecidedSplit:
    split = call.workbench.alignment.split(call.actor)
    if split is None:
        raise UnknownRecord("no decided cases are chosen yet.")
    return split


@endpoint("POST", "/judge/versions/{version}/hold-out", "oversee", WRITE_VERSIONS)
def hold_out_questions(call: ApiCall) -> JudgeVersion:
    """Let a draft hold out the held-out half of the newest choice of cases."""
    return call.workbench.alignment.hold_out(call.actor, _version_in_path(call))


@endpoint("GET", "/judge/versions/{version}/trial-plan", "read", "see pages, figures and reports")
def plan_judge_trial(call: ApiCall) -> TrialPlan:
    """Return what trying a version would audit, and the most that it may cost."""
    return call.workbench.alignment.plan(call.actor, _version_in_path(call))


@endpoint("POST", "/judge/versions/{version}/trial", "oversee", TRY_VERSIONS)
def start_judge_trial(call: ApiCall) -> records.TrialProgress:
    """Start to try a version on its held-out cases. It goes on in the background."""
    return _trial_progress(call.workbench.alignment.start(call.actor, _version_in_path(call)))


@endpoint("GET", "/judge/versions/{version}/trial", "read", "see pages, figures and reports")
def show_judge_trial(call: ApiCall) -> records.TrialProgress | None:
    """Return how far the last trial of a version on this server is; null if there was none."""
    task = call.workbench.alignment.latest_trial(_version_in_path(call))
    return None if task is None else _trial_progress(task)


def _trial_progress(task: RunningTrial) -> records.TrialProgress:
    return records.TrialProgress(
        total=task.total,
        done=task.done,
        running=not task.over,
        failed=task.failed,
        problems=dict(task.problems),
    )


@endpoint("GET", "/judge/versions/{version}/comparison", "read", "see pages, figures and reports")
def compare_judge_version(call: ApiCall) -> JudgeComparison:
    """Compare the stored audits and the trial of a version with people, on the held-out cases."""
    return call.workbench.alignment.compare(call.actor, _version_in_path(call))


@endpoint("POST", "/judge/versions/{version}/adopt", "oversee", ADOPT_VERSIONS)
def adopt_judge_version(call: ApiCall) -> JudgeVersion:
    """Let audits use a judge version."""
    return call.workbench.judge.adopt(call.actor, call.path["version"])


@endpoint("POST", "/judge/versions/{version}/drop", "oversee", ADOPT_VERSIONS)
def drop_judge_version(call: ApiCall) -> JudgeVersion:
    """Drop a draft, which stays on record."""
    return call.workbench.judge.drop(call.actor, call.path["version"])


@endpoint("POST", "/judge/versions/{version}/retire", "oversee", ADOPT_VERSIONS)
def retire_judge_version(call: ApiCall) -> JudgeVersion:
    """Return to the default judge."""
    return call.workbench.judge.retire(call.actor, call.path["version"])


# Actions on many cases


@endpoint(
    "POST",
    "/batches/preview",
    "decide",
    "act on many cases at once",
    example={"action": "tag", "matching": {"text": "bridge"}, "names": ["bridges"]},
)
def preview_batch(call: ApiCall, body: records.BatchQuestion) -> BatchPreview:
    """Return what an action on many cases would do, and which cases it would leave out."""
    return call.workbench.batches.preview(call.actor, _batch_request(call, body))


@endpoint(
    "POST",
    "/batches",
    "decide",
    "act on many cases at once",
    example={"action": "tag", "cases": ["case-1"], "names": ["bridges"], "token": "once"},
)
def start_batch(call: ApiCall, body: records.NewBatch) -> Batch:
    """Start an action on many cases. Its first cases are handled at once; ``advance`` handles more
    until none waits.
    """
    batches = call.workbench.batches
    batch = batches.start(
        call.actor, _batch_request(call, body), token=body.token, expected=body.expected
    )
    return batches.advance(call.actor, batch.id)


@endpoint("GET", "/batches", "read", "see pages, figures and reports", example={"limit": 10})
def list_batches(call: ApiCall, query: records.BatchesQuery) -> tuple[Batch, ...]:
    """List the newest batches that this person may see."""
    return call.workbench.batches.newest(call.actor, query.limit)


@endpoint("GET", "/batches/{batch}", "read", "see pages, figures and reports")
def show_batch(call: ApiCall) -> Batch:
    """Return a batch with its counts."""
    return call.workbench.batches.get(call.actor, call.path["batch"])


@endpoint("POST", "/batches/{batch}/advance", "decide", "act on many cases at once")
def advance_batch(call: ApiCall) -> Batch:
    """Handle, or undo, the next cases of a batch."""
    return call.workbench.batches.advance(call.actor, call.path["batch"])


@endpoint("DELETE", "/batches/{batch}", "decide", "act on many cases at once")
def cancel_batch(call: ApiCall) -> Batch:
    """Stop a batch. Entries that were made stay."""
    return call.workbench.batches.cancel(call.actor, call.path["batch"])


@endpoint("POST", "/batches/{batch}/undo", "decide", "undo own decisions or auto-acceptances")
def undo_batch(call: ApiCall) -> Batch:
    """Begin to undo a batch, each entry by a further one; ``advance`` undoes the rest."""
    batches, batch = call.workbench.batches, call.path["batch"]
    batches.start_undo(call.actor, batch)
    return batches.advance(call.actor, batch)


@endpoint(
    "POST",
    "/cases/{case:path}/sentence-labels",
    "decide",
    "act on many cases at once",
    example={"sentence": "It was opened in 1932", "label": "supported"},
)
def label_sentence(call: ApiCall, body: records.NewSentenceLabel) -> Batch:
    """Label a sentence of a case in every answer with it that this person decided."""
    batches = call.workbench.batches
    request = batches.sentence_request(
        call.actor, call.path["case"], body.label_record(), acknowledge=body.acknowledge
    )
    batch = batches.start(call.actor, request, token=body.token)
    return batches.advance(call.actor, batch.id)


def _batch_request(call: ApiCall, body: records.BatchQuestion) -> BatchRequest:
    """Return a request of the service. Who looks at the cases is added here, never by the body."""
    fields = {name: getattr(body, name) for name in BatchRequest.model_fields}
    if body.matching is not None:
        matching = body.matching.case_filter()
        waiting = body.matching.waiting
        fields["matching"] = (
            call.workbench.team.open_to(call.actor, matching) if waiting else matching
        )
    return BatchRequest(**fields)


# Audits


@endpoint("POST", "/audits", "audit", RUN_AUDITS, example={"cases": ["case-1"]})
def start_audits(call: ApiCall, body: records.NewAudits) -> tuple[records.AuditJob, ...]:
    """Start audits of cases as jobs. Without cases, every case without an audit is audited."""
    jobs = call.jobs()
    if not body.cases:
        jobs.audit_all_new(call.actor, body.max_cost)
        return ()
    if body.max_cost is not None:
        raise InputError(
            "limits only an audit of all cases",
            hint="Leave out max_cost, or leave out cases.",
            field="max_cost",
        )
    for case_id in body.cases:
        call.workbench.cases.summary(case_id)  # all must exist before the first one starts
    runs = [
        (_audit_unless_done(call, case_id, again=body.again), case_id) for case_id in body.cases
    ]
    return tuple(_job(call, run_id, case_id) for run_id, case_id in runs)


def _audit_unless_done(call: ApiCall, case_id: str, *, again: bool) -> str:
    """Return the id of a case's audit, which is started unless a finished one can be used."""
    if not again:
        case = call.workbench.store.cases.get(case_id)
        finished = call.workbench.audits.newest_finished(case)
        if finished is not None:
            return finished.id
    return call.jobs().audit(call.actor, case_id)


@endpoint("GET", "/runs/{run}", "read", "see pages, figures and reports")
def show_run(call: ApiCall) -> Run:
    """Return the whole record of a finished audit.

    It is refused while the team's policy hides the audit's results from this person.
    """
    run = call.workbench.runs.get(call.path["run"])
    if call.workbench.team.machine_hidden(call.actor, run.case_id):
        raise ResultsHidden(RESULTS_HIDDEN)
    call.workbench.cases.note_opened(call.actor, run.case_id)
    return run


@endpoint(
    "POST",
    "/cases/{case:path}/minimal-evidence",
    "audit",
    VERIFY_WITHOUT_PASSAGES,
    example={"iteration": 1},
)
def verify_without_passages(
    call: ApiCall, body: records.ClaimToVerify
) -> tuple[MinimalEvidence, ...]:
    """Verify claims of a case with and without the passages that decide them."""
    return call.desk.verify_without_passages(
        call.path["case"], claim=body.claim, iteration=body.iteration
    )


@endpoint("GET", "/cases/{case:path}/minimal-evidence", "read", "see pages, figures and reports")
def list_minimal_evidence(call: ApiCall) -> tuple[MinimalEvidence, ...]:
    """List the verdicts on claims of a case without their passages."""
    return call.desk.minimal_evidence(call.path["case"])


@endpoint("GET", "/audits/{run}", "read", "see pages, figures and reports")
def show_audit(call: ApiCall) -> records.AuditJob:
    """Return how far an audit is. Its results are part of its case."""
    return _job(call, call.path["run"])


@endpoint("DELETE", "/audits/{run}", "audit", "stop audits or screenings")
def stop_audit(call: ApiCall) -> records.AuditJob:
    """Stop an audit after its current step."""
    job = _job(call, call.path["run"])
    call.jobs().cancel(call.actor, "audit", job.case)
    return job


def _job(call: ApiCall, run_id: str, case_id: str = "") -> records.AuditJob:
    """Return the state of an audit, which is either in the queue of this server or in the database.

    Raises:
        UnknownRecord: There is no such audit.

    """
    ahead = call.jobs().count_ahead(run_id)
    if ahead is not None:
        queued = call.jobs().get(run_id)
        case_id = queued.subject if queued is not None else case_id
        return records.AuditJob(run=run_id, case=case_id, state="waiting", ahead=ahead)
    try:
        run: RunSummary = call.workbench.runs.summary(run_id)
    except UnknownRecord:
        queued = call.jobs().get(run_id)  # A worker has it and hasn't stored it yet.
        if queued is None and not case_id:
            raise
        case_id = queued.subject if queued is not None else case_id
        return records.AuditJob(run=run_id, case=case_id, state="waiting", ahead=0)
    return records.AuditJob(run=run.id, case=run.case_id, state=run.state, why=run.why)


# Exports and data sets


@endpoint("GET", "/exports", "read", "see pages, figures and reports")
def list_exports(call: ApiCall) -> tuple[records.ExportFormatInfo, ...]:
    """List the export formats."""
    return tuple(
        records.ExportFormatInfo(name=name, description=form.summary)
        for name, form in export_formats().items()
    )


@endpoint("GET", "/exports/{form}", "export", "export decided cases", example={"encoding": "csv"})
def export(call: ApiCall, query: records.ExportQuery) -> File:
    """Export cases in a format; by default every case that a person decided."""
    form, out = call.path["form"], io.BytesIO()
    selection = query.selection()
    if query.archive is not None:
        return _archive(call, form, selection, query.encoding, query.archive)
    if (known := export_formats().get(form)) is not None and known.folder:
        raise InputError(
            "is a folder", hint="Ask for a zip file with archive=NAME.", field="archive"
        )
    call.workbench.exports.write(call.actor, out, form, selection, encoding=query.encoding)
    suffix = export_formats()[form].suffix
    if query.encoding != "jsonl":
        suffix = f".{query.encoding}"
    media_type = MEDIA_TYPES.get(suffix, "application/octet-stream")
    return File(out.getvalue(), media_type, f"{form}{suffix}")


def _archive(call: ApiCall, form: str, selection: Selection, encoding: str, name: str) -> File:
    """Return an export with its manifest as a zip file."""
    out = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(out, "w") as archive:
        path = Path(folder) / name
        call.workbench.exports.write_file(call.actor, path, form, selection, encoding=encoding)
        for file in sorted(Path(folder).rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder), zipfile.ZIP_DEFLATED)
    return File(out.getvalue(), "application/zip", f"{name}.zip")


@endpoint("GET", "/datasets", "read", "see pages, figures and reports")
def list_versions(call: ApiCall) -> tuple[DatasetVersion, ...]:
    """List the dataset versions."""
    return call.workbench.store.datasets.list_all()


@endpoint(
    "POST",
    "/datasets",
    "export",
    "freeze or export dataset versions",
    example={"name": "pilot-1", "form": "claims", "cases": {"fields": ["Engineering"]}},
)
def freeze_version(call: ApiCall, body: records.NewVersion) -> DatasetVersion:
    """Freeze a dataset version; by default of every case that a person decided."""
    return call.workbench.datasets.freeze(
        call.actor,
        body.name,
        body.form,
        body.selection(),
        description=body.description,
        encoding=body.encoding,
    )


@endpoint("GET", "/datasets/{name}", "export", "freeze or export dataset versions")
def download_version(call: ApiCall) -> File:
    """Return a dataset version and its manifest as a zip file."""
    name = call.path["name"]
    content = call.workbench.datasets.zip(call.actor, name).getvalue()
    return File(content, "application/zip", f"{name}.zip")


# Tokens


@endpoint("GET", "/tokens", "read", "create or revoke your own tokens")
def list_tokens(call: ApiCall) -> tuple[ApiToken, ...]:
    """List this person's tokens; an admin gets everyone's."""
    return call.workbench.tokens.list_for(call.actor)


@endpoint(
    "POST",
    "/tokens",
    "read",
    "create or revoke your own tokens",
    example={"label": "nightly import", "days": 30},
)
def create_token(call: ApiCall, body: records.NewApiToken) -> records.CreatedToken:
    """Create a token that acts for this person. Its text is shown only in this answer."""
    created = call.workbench.tokens.create(call.actor, body.label, role=body.role, days=body.days)
    return records.CreatedToken(text=created.text, token=created.token)


@endpoint("DELETE", "/tokens/{token}", "read", "create or revoke your own tokens")
def revoke_token(call: ApiCall) -> ApiToken:
    """Revoke a token. The next request with it is refused."""
    return call.workbench.tokens.revoke(call.actor, call.path["token"])
