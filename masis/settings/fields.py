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
from masis.schema.model_ref import OFFLINE, ModelRef
from masis.schema.providers import Price, ProviderSettings

Role = Literal["drafter", "verifier", "critic", "reviser", "evaluator"]
ROLES: tuple[Role, ...] = ("drafter", "verifier", "critic", "reviser", "evaluator")
Depth = Literal["quick", "standard", "thorough"]
UNCHECKED: dict[Depth, str] = {
    "quick": (
        "Not checked: what a critic finds, such as logic, safety and ambiguity; no scores and no"
        " revision, and no answer is auto-accepted."
    ),
    "standard": (
        "Not checked: how far the judges' scores vary, and doubtful verdicts by a second model."
    ),
    "thorough": "Not checked: facts of the world beside the evidence.",
}
"""What each depth leaves out; commands and pages show it before an audit."""
THOROUGH_SAMPLES = 3
"""The fewest samples with which a spread shows the outlier."""
Seconds = Annotated[float, Field(gt=0, le=3600)]

MAX_COMPARED_CHARACTERS = 80
"""The number of characters of a wrong name that are compared with valid ones, because comparing
takes quadratic time.
"""


def nearest(name: str, names: Iterable[str], least: float = 0.6) -> str | None:
    """Return the most similar valid name, ignoring case, or None if none is similar."""
    by_small = {each.casefold(): each for each in names}
    near = difflib.get_close_matches(
        name[:MAX_COMPARED_CHARACTERS].casefold(), by_small, n=1, cutoff=least
    )
    return by_small[near[0]] if near else None


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
    "The model of each role. “offline” is rules and measurements on this machine: no key, no"
    " network, no cost.",
)
CALLS = SettingsGroup(
    "calls",
    "Calls to models",
    "How models are reached. Keys are no settings: they come from the environment or a secrets"
    " file.",
)
LOCAL = SettingsGroup(
    "local",
    "Verifier models on this machine",
    "From which scores a model named local:... gives a verdict; between them it can't decide"
    " (docs/models.md).",
    prefix="local_",
)
CITATIONS = SettingsGroup(
    "citations",
    "Citations",
    "What counts as a citation, and what a wrong or missing one costs.",
    prefix="citation_",
)
CLAIMS = SettingsGroup("claims", "Claims and issues", "What becomes an issue.")
DRAFTS = SettingsGroup(
    "drafts",
    "Critique of drafts",
    "Drafts that a query pipeline hands over (critique_draft). The settings for claims apply to"
    " them too.",
    prefix="draft_",
)
SCORES = SettingsGroup(
    "scores",
    "Scores",
    "How the judge's four scores are bounded and weighed. The weights, of the overall score, add up"
    " to 1.",
)
LIMITS = SettingsGroup(
    "limits",
    "Limits",
    "How much of a large answer or case is checked. Beyond it the audit says what was not checked"
    " and needs review.",
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
    "Backups that masis serve makes by itself: verified copies, on another disk if you name one.",
    prefix="backup_",
)
INGEST = SettingsGroup(
    "ingest",
    "Cases over HTTP",
    "What masis ingest does with the cases that programs send (docs/ingestion.md).",
    prefix="ingest_",
)
WEBHOOK = SettingsGroup(
    "webhook",
    "Webhook",
    "Whom masis ingest calls when a case that it took needs review or was decided"
    " (docs/ingestion.md).",
    prefix="webhook_",
)
LOG = SettingsGroup(
    "log",
    "Log and telemetry",
    "What the log and telemetry contain. Nothing is sent unless telemetry is switched on.",
    prefix="log_",
)
GROUPS = tuple(each for each in list(vars().values()) if isinstance(each, SettingsGroup))
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
    for each in error.errors(include_url=False, include_input=False):
        place = ".".join(map(str, each["loc"]))
        message = f"{each['msg'][:1].lower()}{each['msg'][1:].rstrip('.')}"
        problems.append(f"{place}: {message}." if place else f"{message}.")
    return " ".join(problems)


class Settings(Record):
    """The settings of an audit. Every default that a rule fixes is the rule's."""

    drafter: str = JUDGES(
        OFFLINE,
        "REQ-CRITIC-026",
        "Writes an answer from the evidence where a case came without one.",
    )
    verifier: str = JUDGES(
        OFFLINE,
        "DRAFT-CRITIQUE-VERIFY",
        "Checks each claim against the evidence; also a model on this machine, local:FOLDER, or"
        " offline,MODEL: the model for what the offline checks leave open.",
    )
    critic: str = JUDGES(
        OFFLINE,
        "MASIS-CRITIC-P1",
        "Criticises: what the answer gets wrong, leaves out or does not support.",
    )
    reviser: str = JUDGES(
        OFFLINE, "CRITIC-LOOP-MODELS", "Rewrites the answer so that the issues are resolved."
    )
    evaluator: str = JUDGES(
        OFFLINE, "MASIS-EVAL-P1", "Scores faithfulness, relevance, completeness and reasoning."
    )

    max_retries: Annotated[int, Field(ge=0, le=5)] = CALLS(
        2,
        "REQ-CRITIC-032",
        "How often a call is tried again when the server is busy, fails or answers out of form.",
    )
    retry_base_s: Annotated[float, Field(gt=0, le=60)] = CALLS(
        0.5,
        "REQ-CRITIC-032",
        "Seconds to wait before the first retry, twice that before the second, up to half less at"
        " random.",
    )
    retry_cap_s: Annotated[float, Field(gt=0, le=600)] = CALLS(
        8.0, "REQ-CRITIC-032", "The longest such wait. A server that asks for a longer one gets it."
    )
    claims_batch: Annotated[int, Field(ge=1, le=50)] = CALLS(
        8, "DRAFT-CRITIQUE-CACHE", "How many claims are checked in one call."
    )
    providers: dict[str, ProviderSettings] = CALLS(
        {},
        "REQ-CRITIC-SEC-002",
        "Servers of your own, and other addresses for known ones: tables of the configuration"
        " file.",
    )
    prices: dict[str, Price] = CALLS(
        {},
        "a cost is reported only where prices are known",
        "Prices of your own in US dollars a million tokens: tables of the configuration file.",
    )
    record: str = CALLS(
        "",
        "an audit by a model can be repeated without it",
        "A file that every reply of a model is appended to, to be replayed as replay:FILE."
        " Redaction, purge and retention don't reach it.",
    )
    cache: bool = CALLS(
        False,
        "replies are texts of cases: they are kept a second time only where somebody asked for it",
        "Whether replies are kept in the database, so that the same call for a case is not paid"
        " twice.",
    )
    programs_folder: str = CALLS(
        "", "REQ-CRITIC-007", "The folder of compiled critics; empty: programs in your data folder."
    )
    exam_results: str = CALLS(
        "",
        "a model accepts no answer before it has passed the exam",
        "The file of the results of exams; empty: exams.jsonl in your data folder.",
    )

    local_supported_from: Share = LOCAL(
        0.75,
        "a confirmation must be safe: above the 0.5 that such models were trained to decide at",
        "A claim is supported from this probability on that a passage supports it.",
    )
    local_unsupported_to: Share = LOCAL(
        0.1,
        "a flag must be right: below the 0.5 that such models were trained to decide at",
        "A claim is unsupported where no passage supports it with more than this probability.",
    )
    local_contradicted_from: Share = LOCAL(
        0.8,
        "a flag must be right: above the 0.5 that such models were trained to decide at",
        "A claim is contradicted from this probability on; only models that tell contradictions"
        " apart.",
    )
    local_threads: Annotated[int, Field(ge=1, le=64)] = LOCAL(
        1,
        "one by default, so that other work goes on",
        "Processor threads for the model; audits in several processes use as many each.",
    )

    citation_mode: Literal["standard", "literal"] = CITATIONS(
        "standard",
        "MASIS-CRITIC-LITERAL",
        "standard also reads ranges, names and links; literal takes ids only as they are written.",
    )
    invalid_citation_penalty: Share = CITATIONS(
        0.5,
        "MASIS-CRITIC-P3",
        "Confidence is multiplied by this where a reference names no evidence.",
    )
    uncited_claim_penalty: Share = CITATIONS(
        0.9,
        "MASIS-CRITIC-P4",
        "Confidence is multiplied by this where a sentence that asserts cites nothing.",
    )

    strictness: Literal["lenient", "moderate", "strict"] = CLAIMS(
        "moderate",
        "DRAFT-CRITIQUE-CONFIG",
        "lenient reports serious issues only, moderate leaves out minor ones, strict reports all.",
    )
    check_factual: bool = CLAIMS(
        True,
        "DRAFT-CRITIQUE-CONFIG",
        "Whether claims that the evidence does not support become issues.",
    )
    check_completeness: bool = CLAIMS(
        True,
        "DRAFT-CRITIQUE-CONFIG",
        "Whether what is asked for and in the evidence, but not in the answer, is an issue.",
    )
    check_contradictions: bool = CLAIMS(
        True, "DRAFT-CRITIQUE-CONFIG", "Whether claims that the evidence contradicts become issues."
    )

    draft_critique: bool = DRAFTS(
        True, "DRAFT-CRITIQUE-CONFIG", "Whether a pipeline has its drafts checked at all."
    )
    draft_auto_revise: bool = DRAFTS(
        False, "DRAFT-CRITIQUE-CONFIG", "Whether a draft with issues is revised at once."
    )
    draft_max_revisions: Annotated[int, Field(ge=1, le=4)] = DRAFTS(
        1,
        "DRAFT-CRITIQUE-CONFIG",
        "How many revisions of one draft are made at most; each is checked again.",
    )
    draft_min_length: Annotated[int, Field(ge=0)] = DRAFTS(
        50,
        "DRAFT-CRITIQUE-CONFIG",
        "Drafts with fewer characters than this go through a pipeline unchecked.",
    )

    hallucination_faithfulness_cap: Share = SCORES(
        0.4,
        "MASIS-EVAL-P5",
        "Faithfulness is at most this where a reference or a statement is fabricated.",
    )
    uncited_faithfulness_cap: Share = SCORES(
        0.5, "MASIS-EVAL-P5", "Faithfulness is at most this with several uncited sentences."
    )
    uncited_cap_from: Annotated[int, Field(ge=1)] = SCORES(
        5, "MASIS-EVAL-P5", "How many uncited sentences are several."
    )
    many_uncited_faithfulness_cap: Share = SCORES(
        0.3, "MASIS-EVAL-P5", "Faithfulness is at most this with many uncited sentences."
    )
    many_uncited_cap_from: Annotated[int, Field(ge=1)] = SCORES(
        10, "MASIS-EVAL-P5", "How many uncited sentences are many."
    )
    faithfulness_weight: Share = SCORES(
        0.35,
        "MASIS-EVAL-WEIGHTS",
        "Weight of faithfulness: the answer says only what the evidence supports.",
    )
    relevance_weight: Share = SCORES(
        0.25, "MASIS-EVAL-WEIGHTS", "Weight of relevance: it answers the question."
    )
    completeness_weight: Share = SCORES(
        0.25, "MASIS-EVAL-WEIGHTS", "Weight of completeness: it uses what the evidence offers."
    )
    reasoning_weight: Share = SCORES(
        0.15, "MASIS-EVAL-WEIGHTS", "Weight of reasoning: its steps hold together."
    )
    evaluate: Literal["every", "final", "never"] = SCORES(
        "every",
        "MASIS-EVAL-ROUTING",
        "every: each iteration is scored; final: only the last one; never: none.",
    )

    max_answer_characters: Annotated[int, Field(ge=1_000, le=limits.ANSWER)] = LIMITS(
        100_000,
        "an audit takes bounded time",
        "How many characters of an answer are checked, from its beginning.",
    )
    max_claims: Annotated[int, Field(ge=1)] = LIMITS(
        500,
        "an audit takes bounded time",
        "How many claims of an answer are checked, the first of them.",
    )
    max_evidence: Annotated[int, Field(ge=1, le=limits.CHUNKS)] = LIMITS(
        500,
        "an audit takes bounded time",
        "How many chunks of evidence are read, those the answer cites first.",
    )
    max_evidence_characters: Annotated[int, Field(ge=1_000, le=limits.EVIDENCE)] = LIMITS(
        1_000_000, "an audit takes bounded time", "How many characters of evidence are read in all."
    )

    depth: Depth = LOOP(
        "standard",
        "an answer that no critic has read is not certified",
        "quick: citations and claims only, no critic, no scores, no revision, never auto-accepted;"
        " standard: all roles; thorough: judges are asked three times, and doubtful claims by the"
        " critic's model as well.",
    )
    max_iterations: Annotated[int, Field(ge=1, le=5)] = LOOP(
        3,
        "REQ-CRITIC-016",
        "How many versions of the answer are audited at most, the first included.",
    )
    min_iterations: Annotated[int, Field(ge=1, le=5)] = LOOP(
        1,
        "REQ-CRITIC-017",
        "How many versions are audited at least, unless the reviser changes nothing: 2 revises once"
        " also where no serious issue is left.",
    )
    output_validator: Annotated[str, Field(min_length=1, max_length=100)] = LOOP(
        "pydantic",
        "REQ-CRITIC-028",
        "What an improved answer must pass before it is audited: pydantic, or baml, which also"
        " repairs replies out of form.",
    )
    improvement_threshold: Share = LOOP(
        0.05, "REQ-CRITIC-017", "It stops when a revision raises quality by less than this."
    )
    call_deadline_s: Seconds = LOOP(
        15.0,
        "REQ-CRITIC-NFR-001, REQ-CRITIC-NFR-002",
        "Seconds that one call to a model may take, over all its tries.",
    )
    iteration_deadline_s: Seconds = LOOP(
        35.0, "REQ-CRITIC-NFR-003", "Seconds that one iteration may take, its revision included."
    )
    loop_deadline_s: Seconds = LOOP(
        90.0,
        "REQ-CRITIC-NFR-004",
        "Seconds that a whole run may take; what is finished by then is the result.",
    )
    judge_samples: Annotated[int, Field(ge=1, le=9)] = LOOP(
        1,
        "judges that sample vary, and their spread shows how much",
        "How often critic and evaluator, where they are models, judge each answer.",
    )
    sample_temperature: Annotated[float, Field(ge=0, le=2)] = LOOP(
        0.7,
        "judges that sample vary, and their spread shows how much",
        "The temperature of critic and evaluator when they judge more than once.",
    )

    screening_graders: str = SCREENING(
        OFFLINE,
        "AESOP-CONSENSUS",
        "Who grades an abstract: “offline”, a model, or several with commas between them.",
    )
    screening_retrieve: Annotated[int, Field(ge=1, le=1000)] = SCREENING(
        20, "AESOP-ROUNDS", "How many abstracts a round takes from each source."
    )
    screening_max_rounds: Annotated[int, Field(ge=1, le=100)] = SCREENING(
        4, "AESOP-DECAY", "After how many rounds the evidence is called insufficient."
    )
    screening_least_rounds: Annotated[int, Field(ge=1, le=100)] = SCREENING(
        1,
        "one that is searched further makes another round though an earlier one sufficed",
        "How many rounds of a screening there are at least, however good the first ones are.",
    )
    screening_required_first: Share = SCREENING(
        0.70,
        "AESOP-DECAY",
        "Average quality that the kept abstracts of the first round must reach.",
    )
    screening_required_step: Share = SCREENING(
        0.05, "AESOP-DECAY", "By how much the required average falls with each further round."
    )
    screening_required_least: Share = SCREENING(
        0.55, "AESOP-DECAY", "The lowest required average of any round."
    )
    screening_keep_share: Share = SCREENING(
        0.60,
        "AESOP-CONSENSUS",
        "The share of abstracts to keep from which the evidence can be sufficient.",
    )
    screening_discard_share: Share = SCREENING(
        0.50, "AESOP-CONSENSUS", "The share to discard from which more is retrieved in any case."
    )
    screening_least_studies: Annotated[int, Field(ge=1, le=20)] = SCREENING(
        2,
        "beyond the specification: one weak study must not make a verdict",
        "How many independent studies a verdict needs, unless one is a systematic review or a large"
        " trial.",
    )
    screening_memory: bool = SCREENING(
        False,
        "AESOP-MEMORY",
        "Whether what was accepted before may move the required average a little.",
    )
    screening_memory_bound: Annotated[float, Field(ge=0, le=0.1)] = SCREENING(
        0.05,
        "what was learned must not run away with the threshold",
        "The most by which memory moves it, up or down.",
    )
    screening_criteria: Annotated[str, Field(max_length=10_000)] = SCREENING(
        "",
        "shown with the result, and offered as reasons to people; no machine judges by them",
        "Criteria of the team, a line each: 'include: adults', 'exclude: no control group'.",
    )
    screening_concepts: Annotated[str, Field(max_length=10_000)] = SCREENING(
        "",
        "they take the place of what is read of the question; for one screening, not for a"
        " workbench",
        "Concepts of the question, a line each: 'population: adults', 'outcome: death = mortality,"
        " stroke'.",
    )
    screening_pubmed_email: str = SCREENING(
        "",
        "PubMed asks who searches",
        "The e-mail address PubMed may write to about searches made here; it asks for one.",
    )
    screening_pubmed_address: str = SCREENING(
        "https://eutils.ncbi.nlm.nih.gov/entrez/eutils",
        "for a mirror, or a server of a test",
        "Where PubMed's E-utilities are reached.",
    )

    review_threshold: Share = REVIEW(
        0.7,
        "between what the scale of confidences calls open (0.5) and what it calls sure enough"
        " (0.8)",
        "A run needs review where confidence in the answer is under this.",
    )
    review_quality: Share = REVIEW(
        0.75,
        "between what the critic's scale calls flawed (0.7) and what it calls fit to sign (1)",
        "A run needs review where the quality of the answer is under this.",
    )
    review_disagreement: Share = REVIEW(
        0.35,
        "between the steps of the scales from 0.8 to 0.5 and from 0.9 (a sentence without a"
        " citation) to 0.5",
        "A run needs review where citation engine, critic and evaluator are further apart than"
        " this.",
    )
    draft_unanswered: bool = REVIEW(
        False,
        "a draft hides that the system under test gave no answer",
        "Whether an answer is drafted where the system refused or its call failed, as where an"
        " answer is just missing.",
    )
    review_uncited_answers: bool = REVIEW(
        True,
        "docs/trust.md says what needs review",
        "Whether every answer that cites nothing needs review.",
    )
    max_judge_spread: Share = REVIEW(
        0.25,
        "where judges disagree, a person decides: samples may be one step of 1 and 0.8 apart, and"
        " none of 0.8 and 0.5",
        "A run needs review where the samples of a judge lie further apart than this.",
    )
    review_revised: bool = REVIEW(
        True,
        "a revision is a model's text until a person has read it",
        "Whether every answer that the loop has revised needs review.",
    )
    accept_without_exam: bool = REVIEW(
        False,
        "no model is believed before it has passed the exam",
        "Whether answers may pass without a person although a model that judged them has not passed"
        " the exam (masis models exam). Faulty answers may then pass unread, and no figure says how"
        " many.",
    )
    spot_check_share: Share = REVIEW(
        0.05,
        "so that the miss rate can be estimated",
        "The share of runs that need no review and still go to the queue.",
    )
    spot_check_seed: int = REVIEW(
        0,
        "so that the draw can be repeated",
        "The seed of those spot checks: the same seed draws the same cases.",
    )

    retention_days: Annotated[int, Field(ge=0, le=36_500)] = RETENTION(
        30,
        "REQ-CRITIC-COMP-002",
        "After how many days masis purge removes audits nobody has decided on; 0: never.",
    )
    retention_auto: bool = RETENTION(
        False,
        "nothing is removed unless somebody asked for it",
        "Whether masis serve does so by itself, when it starts and once a day.",
    )

    backup_folder: str = BACKUP(
        "",
        "a backup that nobody asked for would fill somebody's disk",
        "The folder in which masis serve makes backups by itself; empty: none.",
    )
    backup_hours: Annotated[int, Field(ge=1, le=8760)] = BACKUP(
        24,
        "what is lost at worst is what was done since",
        "After how many hours the next backup is made.",
    )
    backup_keep: Annotated[int, Field(ge=1, le=1000)] = BACKUP(
        14,
        "two weeks of a backup a day",
        "How many backups stay in the folder; older ones are removed.",
    )

    ingest_model: str = INGEST(
        OFFLINE,
        "what a program sends in is paid for only where somebody asked for it",
        "Who audits the cases that come over HTTP: off, offline, a model for all roles, or"
        " settings: the roles as set above.",
    )
    ingest_depth: Depth = INGEST(
        "standard", "the depth of any audit", "How deep those audits go (see depth)."
    )
    ingest_cost_a_day: Annotated[float, Field(ge=0, le=100_000)] = INGEST(
        5.0,
        "a program that sends without end must not spend without end",
        "US dollars that those audits may cost a day (UTC); the rest waits for the next day. 0: no"
        " limit.",
    )

    webhook_address: str = WEBHOOK(
        "",
        "nothing is sent to anyone unless somebody asked for it",
        "The https address that is called, signed with MASIS_WEBHOOK_SECRET; empty: none.",
    )
    webhook_private: bool = WEBHOOK(
        False,
        "an address that somebody else chose must not reach into this network",
        "Whether it may be a private, loopback or link-local address, and http.",
    )

    log_texts: bool = LOG(
        False,
        "REQ-CRITIC-SEC-003",
        "Whether the log at DEBUG may hold whole answers, critiques and revisions.",
    )
    log_format: Literal["text", "json"] = LOG(
        "text",
        "REQ-CRITIC-OBS-001",
        "text writes lines for people, json one object a line for machines.",
    )
    telemetry: Literal["off", "otlp", "console"] = LOG(
        "off",
        "REQ-CRITIC-OBS-001",
        "off sends nothing, otlp sends spans and metrics to a collector, console prints them.",
    )
    telemetry_texts: bool = LOG(
        False, "REQ-CRITIC-SEC-003", "Whether spans may hold questions, answers and evidence."
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
                near = nearest(str(name), cls.model_fields)
                hint = f" Did you mean '{near}'?" if near else ""
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
        return self.model_dump(mode="json", exclude=NOT_OF_AUDIT)

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
