"""The settings, each declared once with its type, range, default, rule and help text.

A default is the spec's constant if a spec has one. A new field is automatically read from the file,
the environment and flags, and shown on the page and in the docs. If audit results don't depend on
it, add it to ``NOT_OF_AUDIT``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from masis.errors import SettingsError
from masis.schema import limits
from masis.schema.base import Record, Share
from masis.schema.judge import DEFAULT_JUDGE
from masis.schema.model_ref import OFFLINE, ModelRef
from masis.schema.providers import Price, ProviderSettings

Role = Literal["drafter", "verifier", "critic", "reviser", "evaluator"]
ROLES: tuple[Role, ...] = ("drafter", "verifier", "critic", "reviser", "evaluator")
Depth = Literal["quick", "standard", "thorough"]
UNCHECKED: dict[Depth, str] = {
    "quick": (
        "Not checked: issues that only a critic finds, such as logic, safety and ambiguity. There"
        " are no scores and no revision, and no answer is auto-accepted."
    ),
    "standard": (
        "Not checked: how much the judges' scores vary, and doubtful verdicts by a second model."
    ),
    "thorough": "Not checked: facts that aren't in the evidence.",
}
"""What each depth leaves out; commands and pages show it before an audit."""
THOROUGH_SAMPLES = 3
"""Minimum number of samples with which a spread shows the outlier."""
Seconds = Annotated[float, Field(gt=0, le=3600)]

MAX_COMPARED_CHARACTERS = 80
"""The number of characters of a wrong name that are compared with valid ones, because comparing
takes quadratic time.
"""


def nearest(name: str, names: Iterable[str], least: float = 0.6) -> str | None:
    """Return the most similar valid name, ignoring case, or None if none is similar."""
    by_lower_case = {name.casefold(): name for name in names}
    similar = difflib.get_close_matches(
        name[:MAX_COMPARED_CHARACTERS].casefold(), by_lower_case, n=1, cutoff=least
    )
    return by_lower_case[similar[0]] if similar else None


class SettingsGroup(NamedTuple):
    """Settings that are shown together on pages and in docs.

    ``table`` is their table in the file: ``[loop] max_iterations = 3`` is the same as
    ``max_iterations = 3`` above all tables. Names in the table may leave out ``prefix``.
    """

    table: str
    title: str
    meaning: str
    prefix: str = ""

    def __call__(self, default: Any, rule: str, meaning: str) -> Any:
        """Declare a setting: its default, its rules in docs/CONFORMANCE.md or the reason, and its
        help text.
        """
        return Field(
            default, description=meaning, json_schema_extra={"group": self.table, "rule": rule}
        )

    @property
    def settings(self) -> tuple[str, ...]:
        """The names of its settings, in declaration order."""
        extras = {name: field.json_schema_extra for name, field in Settings.model_fields.items()}
        return tuple(
            name
            for name, extra in extras.items()
            if isinstance(extra, dict) and extra["group"] == self.table
        )


JUDGES = SettingsGroup(
    "models",
    "Who judges",
    "The model of each role. “offline” uses rules and measurements on this machine, without a key,"
    " network or cost.",
)
CALLS = SettingsGroup(
    "calls",
    "Calls to models",
    "How models are called. Keys aren't settings. They're read from the environment or a secrets"
    " file.",
)
LOCAL = SettingsGroup(
    "local",
    "Verifier models on this machine",
    "The scores from which a model named local:... gives a verdict. Between them it can't decide"
    " (docs/models.md).",
    prefix="local_",
)
CITATIONS = SettingsGroup(
    "citations",
    "Citations",
    "What counts as a citation, and how much a wrong or missing one costs.",
    prefix="citation_",
)
CLAIMS = SettingsGroup("claims", "Claims and issues", "What is reported as an issue.")
DRAFTS = SettingsGroup(
    "drafts",
    "Critique of drafts",
    "Drafts of a query pipeline (critique_draft). The settings for claims apply to them too.",
    prefix="draft_",
)
SCORES = SettingsGroup(
    "scores",
    "Scores",
    "How the judge's four scores are capped and weighted. The weights of the overall score add up"
    " to 1.",
)
LIMITS = SettingsGroup(
    "limits",
    "Limits",
    "How much of a large answer or case is checked. If it is larger, the audit says what it didn't"
    " check and needs review.",
)
LOOP = SettingsGroup("loop", "Loop", "When an audit stops revising the answer.")
SCREENING = SettingsGroup(
    "screening",
    "Screening of abstracts",
    "When the retrieved evidence is good enough, and when more is retrieved.",
    prefix="screening_",
)
REVIEW = SettingsGroup("review", "Review", "When a run needs review.")
RETENTION = SettingsGroup(
    "retention",
    "Retention",
    "How long audits and screenings are stored. Cases and decisions are never removed.",
    prefix="retention_",
)
BACKUP = SettingsGroup(
    "backup",
    "Backups",
    "The automatic backups of masis serve: verified copies, on another disk if you choose one.",
    prefix="backup_",
)
INGEST = SettingsGroup(
    "ingest",
    "Cases over HTTP",
    "How masis ingest audits the cases that programs send (docs/ingestion.md).",
    prefix="ingest_",
)
WEBHOOK = SettingsGroup(
    "webhook",
    "Webhook",
    "The address that masis ingest calls when a case that it received needs review or is decided"
    " (docs/ingestion.md).",
    prefix="webhook_",
)
LOG = SettingsGroup(
    "log",
    "Log and telemetry",
    "What the log and telemetry contain. Nothing is sent unless you turn telemetry on.",
    prefix="log_",
)
GROUPS = tuple(value for value in list(vars().values()) if isinstance(value, SettingsGroup))
"""All groups, in declaration order."""


class InvalidSettings(SettingsError, ValueError):
    """Settings that were created in Python aren't valid. Like pydantic's error, it's a
    ValueError.
    """


def _explain_settings_error(error: ValidationError) -> str:
    """Return the errors in settings that were created in Python, without values, because one may be
    a key.
    """
    problems = []
    for problem in error.errors(include_url=False, include_input=False):
        place = ".".join(map(str, problem["loc"]))
        message = f"{problem['msg'][:1].lower()}{problem['msg'][1:].rstrip('.')}"
        problems.append(f"{place}: {message}." if place else f"{message}.")
    return " ".join(problems)


class Settings(Record):
    """The settings of an audit. Every default that a rule fixes is the rule's."""

    drafter: str = JUDGES(
        OFFLINE,
        "REQ-CRITIC-026",
        "The model that writes an answer from the evidence if a case has none.",
    )
    verifier: str = JUDGES(
        OFFLINE,
        "DRAFT-CRITIQUE-VERIFY",
        "The model that checks each claim against the evidence. It can also be a model on this"
        " machine (local:FOLDER), or offline,MODEL: then MODEL checks only the claims that the"
        " offline checks leave open.",
    )
    critic: str = JUDGES(
        OFFLINE,
        "MASIS-CRITIC-P1",
        "The model that finds errors, omissions and unsupported statements in the answer.",
    )
    reviser: str = JUDGES(
        OFFLINE,
        "CRITIC-LOOP-MODELS",
        "The model that rewrites the answer to resolve the issues.",
    )
    evaluator: str = JUDGES(
        OFFLINE,
        "MASIS-EVAL-P1",
        "The model that scores faithfulness, relevance, completeness and reasoning.",
    )

    max_retries: Annotated[int, Field(ge=0, le=5)] = CALLS(
        2,
        "REQ-CRITIC-032",
        "How often a call is retried if the server is busy, fails or returns an invalid reply.",
    )
    retry_base_s: Annotated[float, Field(gt=0, le=60)] = CALLS(
        0.5,
        "REQ-CRITIC-032",
        "Seconds to wait before the first retry. The wait doubles with each retry, and up to"
        " half of it is left out at random.",
    )
    retry_cap_s: Annotated[float, Field(gt=0, le=600)] = CALLS(
        8.0,
        "REQ-CRITIC-032",
        "The longest wait before a retry, in seconds. If a server asks for a longer one, that"
        " one is used.",
    )
    claims_batch: Annotated[int, Field(ge=1, le=50)] = CALLS(
        8,
        "DRAFT-CRITIQUE-CACHE",
        "How many claims are checked in one call.",
    )
    providers: dict[str, ProviderSettings] = CALLS(
        {},
        "REQ-CRITIC-SEC-002",
        "Your own servers, and other addresses for known providers: tables of the configuration"
        " file.",
    )
    prices: dict[str, Price] = CALLS(
        {},
        "costs are reported only if prices are known",
        "Your own prices in US dollars per million tokens: tables of the configuration file.",
    )
    record: str = CALLS(
        "",
        "an audit by a model can be repeated without the model",
        "A file to which every reply of a model is appended. Replay it with the model"
        " replay:FILE. Redaction, purge and retention don't reach this file.",
    )
    cache: bool = CALLS(
        False,
        "replies contain text from cases, so a second copy is stored only on request",
        "Whether replies are stored in the database, so that you don't pay twice for the same"
        " call on a case.",
    )
    programs_folder: str = CALLS(
        "",
        "REQ-CRITIC-007",
        "The folder of compiled critics. Empty: programs in your data folder.",
    )
    exam_results: str = CALLS(
        "",
        "a model can't accept an answer before it has passed the exam",
        "The file with the results of exams. Empty: exams.jsonl in your data folder.",
    )

    local_supported_from: Share = LOCAL(
        0.75,
        "confirmations must be safe, so this is above the 0.5 that such models are trained for",
        "A claim is supported if a passage supports it with at least this probability.",
    )
    local_unsupported_to: Share = LOCAL(
        0.1,
        "flags must be right, so this is below the 0.5 that such models are trained for",
        "A claim is unsupported if no passage supports it with more than this probability.",
    )
    local_contradicted_from: Share = LOCAL(
        0.8,
        "flags must be right, so this is above the 0.5 that such models are trained for",
        "A claim is contradicted if this probability is reached. Applies only to models that"
        " recognize contradictions.",
    )
    local_threads: Annotated[int, Field(ge=1, le=64)] = LOCAL(
        1,
        "one by default, so that other work isn't slowed down",
        "Processor threads for the model. If several processes audit, each uses this many.",
    )

    citation_mode: Literal["standard", "literal"] = CITATIONS(
        "standard",
        "MASIS-CRITIC-LITERAL",
        "standard also reads ranges, names and links. literal reads only exact ids.",
    )
    invalid_citation_penalty: Share = CITATIONS(
        0.5,
        "MASIS-CRITIC-P3",
        "Confidence is multiplied by this if a reference isn't in the evidence.",
    )
    uncited_claim_penalty: Share = CITATIONS(
        0.9,
        "MASIS-CRITIC-P4",
        "Confidence is multiplied by this if a sentence makes a claim without a citation.",
    )

    strictness: Literal["lenient", "moderate", "strict"] = CLAIMS(
        "moderate",
        "DRAFT-CRITIQUE-CONFIG",
        "lenient reports only serious issues, moderate leaves out those of severity low, strict"
        " reports all.",
    )
    check_factual: bool = CLAIMS(
        True,
        "DRAFT-CRITIQUE-CONFIG",
        "Whether claims that the evidence doesn't support are reported as issues.",
    )
    check_completeness: bool = CLAIMS(
        True,
        "DRAFT-CRITIQUE-CONFIG",
        "Whether requested information that is in the evidence but not in the answer is"
        " reported as an issue.",
    )
    check_contradictions: bool = CLAIMS(
        True,
        "DRAFT-CRITIQUE-CONFIG",
        "Whether claims that the evidence contradicts are reported as issues.",
    )

    draft_critique: bool = DRAFTS(
        True,
        "DRAFT-CRITIQUE-CONFIG",
        "Whether the drafts of a pipeline are checked at all.",
    )
    draft_auto_revise: bool = DRAFTS(
        False,
        "DRAFT-CRITIQUE-CONFIG",
        "Whether a draft with issues is revised automatically.",
    )
    draft_max_revisions: Annotated[int, Field(ge=1, le=4)] = DRAFTS(
        1,
        "DRAFT-CRITIQUE-CONFIG",
        "The maximum number of revisions of a draft. Each one is checked again.",
    )
    draft_min_length: Annotated[int, Field(ge=0)] = DRAFTS(
        50,
        "DRAFT-CRITIQUE-CONFIG",
        "Drafts with fewer characters than this aren't checked.",
    )

    hallucination_faithfulness_cap: Share = SCORES(
        0.4,
        "MASIS-EVAL-P5",
        "The highest faithfulness of an answer with a fabricated reference or statement.",
    )
    uncited_faithfulness_cap: Share = SCORES(
        0.5,
        "MASIS-EVAL-P5",
        "The highest faithfulness of an answer with several uncited sentences.",
    )
    uncited_cap_from: Annotated[int, Field(ge=1)] = SCORES(
        5,
        "MASIS-EVAL-P5",
        "How many uncited sentences count as several.",
    )
    many_uncited_faithfulness_cap: Share = SCORES(
        0.3,
        "MASIS-EVAL-P5",
        "The highest faithfulness of an answer with many uncited sentences.",
    )
    many_uncited_cap_from: Annotated[int, Field(ge=1)] = SCORES(
        10,
        "MASIS-EVAL-P5",
        "How many uncited sentences count as many.",
    )
    faithfulness_weight: Share = SCORES(
        0.35,
        "MASIS-EVAL-WEIGHTS",
        "The weight of faithfulness: whether the evidence supports the answer.",
    )
    relevance_weight: Share = SCORES(
        0.25,
        "MASIS-EVAL-WEIGHTS",
        "The weight of relevance: whether the answer addresses the question.",
    )
    completeness_weight: Share = SCORES(
        0.25,
        "MASIS-EVAL-WEIGHTS",
        "The weight of completeness: whether the answer uses the relevant evidence.",
    )
    reasoning_weight: Share = SCORES(
        0.15,
        "MASIS-EVAL-WEIGHTS",
        "The weight of reasoning: whether the answer's steps are coherent.",
    )
    evaluate: Literal["every", "final", "never"] = SCORES(
        "every",
        "MASIS-EVAL-ROUTING",
        "every scores each iteration, final only the last one, never none.",
    )

    max_answer_characters: Annotated[int, Field(ge=1_000, le=limits.ANSWER)] = LIMITS(
        100_000,
        "an audit's time is bounded",
        "How many characters of an answer are checked, from its beginning.",
    )
    max_claims: Annotated[int, Field(ge=1)] = LIMITS(
        500,
        "an audit's time is bounded",
        "How many claims of an answer are checked, from its beginning.",
    )
    max_evidence: Annotated[int, Field(ge=1, le=limits.CHUNKS)] = LIMITS(
        500,
        "an audit's time is bounded",
        "How many chunks of evidence are read, starting with those that the answer cites.",
    )
    max_evidence_characters: Annotated[int, Field(ge=1_000, le=limits.EVIDENCE)] = LIMITS(
        1_000_000,
        "an audit's time is bounded",
        "How many characters of evidence are read in total.",
    )

    depth: Depth = LOOP(
        "standard",
        "an answer that no critic has read isn't certified",
        "quick checks only citations and claims, without critic, scores and revision, and never"
        " auto-accepts. standard uses all roles. thorough asks the judges three times, and has"
        " the critic's model check doubtful claims as well.",
    )
    max_iterations: Annotated[int, Field(ge=1, le=5)] = LOOP(
        3,
        "REQ-CRITIC-016",
        "The maximum number of audited versions of an answer, including the original.",
    )
    min_iterations: Annotated[int, Field(ge=1, le=5)] = LOOP(
        1,
        "REQ-CRITIC-017",
        "The minimum number of audited versions, unless the reviser changes nothing. 2 revises once"
        " even if no serious issue is left.",
    )
    output_validator: Annotated[str, Field(min_length=1, max_length=100)] = LOOP(
        "pydantic",
        "REQ-CRITIC-028",
        "How a revised answer is validated before its audit: pydantic, or baml, which also"
        " repairs invalid replies.",
    )
    checks: Annotated[str, Field(max_length=1000)] = LOOP(
        "",
        "a team checks what only it knows, and another package can't do so unasked",
        "Checks of answers that other packages add, with commas between them; empty: none.",
    )
    judge: Annotated[str, Field(max_length=100)] = LOOP(
        "",
        "a version that nobody has adopted must be named to be tried",
        "The judge version: the id or name of a judge version of the database,"
        " or none. Empty: the version that the team adopted, if there is one.",
    )
    improvement_threshold: Share = LOOP(
        0.05,
        "REQ-CRITIC-017",
        "The loop stops when a revision raises quality by less than this.",
    )
    call_deadline_s: Seconds = LOOP(
        15.0,
        "REQ-CRITIC-NFR-001, REQ-CRITIC-NFR-002",
        "The maximum time for one call to a model, including retries, in seconds.",
    )
    iteration_deadline_s: Seconds = LOOP(
        35.0,
        "REQ-CRITIC-NFR-003",
        "The maximum time for one iteration, including its revision, in seconds.",
    )
    loop_deadline_s: Seconds = LOOP(
        90.0,
        "REQ-CRITIC-NFR-004",
        "The maximum time for a whole run, in seconds. The result consists of the steps that are"
        " finished by then.",
    )
    judge_samples: Annotated[int, Field(ge=1, le=9)] = LOOP(
        1,
        "samples of a judge vary, and their spread shows by how much",
        "How often the critic and the evaluator judge each answer, if they are models.",
    )
    sample_temperature: Annotated[float, Field(ge=0, le=2)] = LOOP(
        0.7,
        "samples of a judge vary, and their spread shows by how much",
        "The temperature of the critic and the evaluator if they judge more than once.",
    )

    screening_graders: str = SCREENING(
        OFFLINE,
        "AESOP-CONSENSUS",
        "What grades abstracts: “offline”, a model, or several separated by commas.",
    )
    screening_retrieve: Annotated[int, Field(ge=1, le=1000)] = SCREENING(
        20,
        "AESOP-ROUNDS",
        "How many abstracts are retrieved from each source in a round.",
    )
    screening_max_rounds: Annotated[int, Field(ge=1, le=100)] = SCREENING(
        4,
        "AESOP-DECAY",
        "The number of rounds after which the evidence is called insufficient.",
    )
    screening_least_rounds: Annotated[int, Field(ge=1, le=100)] = SCREENING(
        1,
        "a screening that is searched further adds a round even if an earlier one was sufficient",
        "The minimum number of rounds of a screening, no matter how good the first ones are.",
    )
    screening_required_first: Share = SCREENING(
        0.70,
        "AESOP-DECAY",
        "The average quality that the kept abstracts must reach in the first round.",
    )
    screening_required_step: Share = SCREENING(
        0.05,
        "AESOP-DECAY",
        "How much the required average falls with each further round.",
    )
    screening_required_least: Share = SCREENING(
        0.55,
        "AESOP-DECAY",
        "The lowest required average of any round.",
    )
    screening_keep_share: Share = SCREENING(
        0.60,
        "AESOP-CONSENSUS",
        "The evidence can be sufficient only if at least this share of abstracts is kept.",
    )
    screening_discard_share: Share = SCREENING(
        0.50,
        "AESOP-CONSENSUS",
        "More is retrieved in any case if at least this share of abstracts is discarded.",
    )
    screening_least_studies: Annotated[int, Field(ge=1, le=20)] = SCREENING(
        2,
        "beyond the specification: one weak study must not decide a verdict",
        "How many independent studies a verdict needs, unless one is a systematic review or a"
        " large trial.",
    )
    screening_page: bool = SCREENING(
        True,
        "a team that only audits answers doesn't need it",
        "Whether the workbench has the Screening page. Commands and the API have it anyway.",
    )
    screening_memory: bool = SCREENING(
        False,
        "AESOP-MEMORY",
        "Whether earlier acceptances may move the required average a little.",
    )
    screening_memory_bound: Annotated[float, Field(ge=0, le=0.1)] = SCREENING(
        0.05,
        "memory must not move the threshold far",
        "The maximum amount by which memory moves the required average, up or down.",
    )
    screening_criteria: Annotated[str, Field(max_length=10_000)] = SCREENING(
        "",
        "shown with the result and offered as reasons; never used by a grader",
        "Criteria of the team, one per line: 'include: adults', 'exclude: no control group'.",
    )
    screening_concepts: Annotated[str, Field(max_length=10_000)] = SCREENING(
        "",
        "they replace the concepts that are read from the question; set them for one screening,"
        " not for a workbench",
        "Concepts of the question, one per line: 'population: adults', 'outcome: death ="
        " mortality, stroke'.",
    )
    screening_pubmed_email: str = SCREENING(
        "",
        "PubMed asks for an address",
        "The e-mail address at which PubMed can reach you about your searches.",
    )
    screening_pubmed_address: str = SCREENING(
        "https://eutils.ncbi.nlm.nih.gov/entrez/eutils",
        "for mirrors and test servers",
        "The address of PubMed's E-utilities.",
    )

    review_threshold: Share = REVIEW(
        0.7,
        "between the confidences that the scale calls open (0.5) and sure enough (0.8)",
        "A run needs review if confidence in the answer is below this.",
    )
    review_quality: Share = REVIEW(
        0.75,
        "between the qualities that the critic's scale calls flawed (0.7) and fit to sign (1)",
        "A run needs review if the quality of the answer is below this.",
    )
    review_disagreement: Share = REVIEW(
        0.35,
        "between the steps of the scales from 0.8 to 0.5 and from 0.9 (a sentence without a"
        " citation) to 0.5",
        "A run needs review if the citation engine, the critic and the evaluator differ by more"
        " than this.",
    )
    draft_unanswered: bool = REVIEW(
        False,
        "a draft hides that the system under test didn't answer",
        "Whether an answer is drafted if the system refused or its call failed. One is always"
        " drafted if the answer is just missing.",
    )
    review_uncited_answers: bool = REVIEW(
        True,
        "docs/trust.md explains what needs review",
        "Whether every answer without citations needs review.",
    )
    max_judge_spread: Share = REVIEW(
        0.25,
        "if judges disagree, a person decides: samples may be one step apart (1 and 0.8), but"
        " not two (0.8 and 0.5)",
        "A run needs review if the samples of a judge differ by more than this.",
    )
    review_revised: bool = REVIEW(
        True,
        "a revision is a model's text until a person has read it",
        "Whether every answer that the loop has revised needs review.",
    )
    accept_without_exam: bool = REVIEW(
        False,
        "a model isn't trusted before it has passed the exam",
        "Whether answers can be accepted without review although a model that judged them"
        " hasn't passed the exam (masis models exam). Faulty answers may then be accepted"
        " unread, and no figure says how many.",
    )
    spot_check_share: Share = REVIEW(
        0.05,
        "the miss rate is estimated from them",
        "The share of runs that need no review and are queued anyway, as spot checks.",
    )
    spot_check_seed: int = REVIEW(
        0,
        "a draw can be repeated",
        "The seed of the spot checks. The same seed draws the same cases.",
    )

    retention_days: Annotated[int, Field(ge=0, le=36_500)] = RETENTION(
        30,
        "REQ-CRITIC-COMP-002",
        "After how many days masis purge removes audits without a decision. 0: never.",
    )
    retention_auto: bool = RETENTION(
        False,
        "nothing is removed unless you ask for it",
        "Whether masis serve purges by itself, when it starts and once a day.",
    )

    backup_folder: str = BACKUP(
        "",
        "unrequested backups would fill a disk",
        "The folder for the automatic backups of masis serve. Empty: none are made.",
    )
    backup_hours: Annotated[int, Field(ge=1, le=8760)] = BACKUP(
        24,
        "at worst, you lose the work since the last backup",
        "The hours between two backups.",
    )
    backup_keep: Annotated[int, Field(ge=1, le=1000)] = BACKUP(
        14,
        "two weeks of daily backups",
        "How many backups are kept. Older ones are removed.",
    )

    ingest_model: str = INGEST(
        OFFLINE,
        "audits of incoming cases cost money only if you ask for it",
        "What audits the cases that arrive over HTTP: off, offline, a model for all roles, or"
        " settings: the models of the roles above.",
    )
    ingest_depth: Depth = INGEST(
        "standard",
        "the depth of any audit",
        "The depth of those audits (see depth).",
    )
    ingest_cost_a_day: Annotated[float, Field(ge=0, le=100_000)] = INGEST(
        5.0,
        "a program that never stops sending must not spend without limit",
        "The maximum cost of those audits per day (UTC), in US dollars. The remaining cases wait"
        " for the next day. 0: no limit.",
    )

    webhook_address: str = WEBHOOK(
        "",
        "nothing is sent unless you ask for it",
        "The https address that is called, signed with MASIS_WEBHOOK_SECRET. Empty: none.",
    )
    webhook_private: bool = WEBHOOK(
        False,
        "an address that somebody else chose must not reach into this network",
        "Whether the address may be private, loopback or link-local, and may use http.",
    )

    log_texts: bool = LOG(
        False,
        "REQ-CRITIC-SEC-003",
        "Whether the log at level DEBUG may contain whole answers, critiques and revisions.",
    )
    log_format: Literal["text", "json"] = LOG(
        "text",
        "REQ-CRITIC-OBS-001",
        "text writes lines for people, json one object per line for machines.",
    )
    telemetry: Literal["off", "otlp", "console"] = LOG(
        "off",
        "REQ-CRITIC-OBS-001",
        "off sends nothing, otlp sends spans and metrics to a collector, console prints them.",
    )
    telemetry_texts: bool = LOG(
        False,
        "REQ-CRITIC-SEC-003",
        "Whether spans may contain questions, answers and evidence.",
    )

    if not TYPE_CHECKING:  # type checkers know the fields from the class

        def __init__(self, /, **settings: Any) -> None:
            try:
                super().__init__(**settings)
            except ValidationError as error:
                raise InvalidSettings(_explain_settings_error(error)) from None

        # pydantic marks its own __init__ with this attribute, and then validates without calling
        # it. So ``model_validate``, whose caller reports each value's place, bypasses this method.
        __init__.__pydantic_base_init__ = True

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, data: Any) -> Any:
        """Reject a wrong name and suggest the nearest valid one, in Python too."""
        for name in data if isinstance(data, Mapping) else ():
            if name not in cls.model_fields:
                similar = nearest(str(name), cls.model_fields)
                hint = f" Did you mean '{similar}'?" if similar else ""
                context = {"name": str(name)[:MAX_COMPARED_CHARACTERS], "hint": hint}
                raise PydanticCustomError(
                    "no_such_setting", "there is no setting '{name}'.{hint}", context
                )
        return data

    def models(self) -> dict[str, str]:
        """Return the model string of each role."""
        return {role: getattr(self, role) for role in ROLES}

    def model_refs(self) -> dict[str, ModelRef]:
        """Return the parsed model string of each role."""
        return {role: ModelRef.parse(string) for role, string in self.models().items()}

    def at_depth(self) -> Settings:
        """Return the settings with the changes that their depth implies."""
        if self.depth == "quick":
            return self.model_copy(
                update={"max_iterations": 1, "min_iterations": 1, "evaluate": "never"}
            )
        if self.depth == "thorough":
            return self.model_copy(
                update={"judge_samples": max(self.judge_samples, THOROUGH_SAMPLES)}
            )
        return self

    def of_audit(self) -> dict[str, Any]:
        """Return the settings that an audit's result depends on, JSON-ready.

        They're stored with the run, and two audits with the same ones are the same audit.
        Connection details, costs, logging, and settings only for screening or critique_draft are
        left out.
        """
        values = self.model_dump(mode="json", exclude=NOT_OF_AUDIT)
        # Left out for the default judge, so that runs of earlier versions still count as the same.
        if not self.names_judge:
            del values["judge"]
        return values

    @property
    def names_judge(self) -> bool:
        """Whether the setting ``judge`` names a version, which only a database has."""
        return self.judge not in ("", DEFAULT_JUDGE)

    def of_screening(self) -> dict[str, Any]:
        """Return the settings that a screening's result depends on, JSON-ready; they're stored with
        it.

        PubMed's address and e-mail address are left out.
        """
        return self.model_dump(mode="json", include=set(SCREENING.settings) - NOT_OF_SCREENING)

    def with_values(self, values: Mapping[str, Any]) -> Settings:
        """Return the settings with other values, such as those of a resumed audit."""
        return Settings.model_validate(self.model_dump() | dict(values))


NOT_OF_SCREENING = {"screening_pubmed_email", "screening_pubmed_address"}
_ELSEWHERE = (DRAFTS, SCREENING, RETENTION, BACKUP, INGEST, WEBHOOK, LOG)
NOT_OF_AUDIT = {
    *(name for group in _ELSEWHERE for name in group.settings),
    *(name for name in CALLS.settings if name != "claims_batch"),
    "local_threads",
}
