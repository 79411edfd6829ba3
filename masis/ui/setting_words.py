"""What each setting does, in a sentence, in the groups the settings page shows them in."""

from __future__ import annotations

from typing import NamedTuple


class Group(NamedTuple):
    """Settings that belong together."""

    title: str
    meaning: str
    settings: dict[str, str]


GROUPS = (
    Group(
        "Who judges",
        "The model of each role. “offline” is rules and measurements on this machine: no key, no network, no cost.",
        {
            "drafter": "Writes an answer from the evidence where a case came without one.",
            "verifier": "Checks each claim of the answer against the evidence.",
            "critic": "Objects: what the answer gets wrong, leaves out or does not bear out.",
            "reviser": "Rewrites the answer so that the objections are met.",
            "evaluator": "Scores faithfulness, relevance, completeness and reasoning.",
        },
    ),
    Group(
        "Calls to models",
        "How models are reached. Keys are no settings: they come from the environment or a secrets file.",
        {
            "max_retries": "How often a call is tried again when the server is busy, fails or answers out of form.",
            "retry_base_s": "Seconds to wait before the first retry, twice that before the second, less some chance.",
            "retry_cap_s": "The longest such wait. What the server asks for comes first.",
            "claims_batch": "How many claims are checked in one call.",
            "providers": "Servers of your own, and other addresses for known ones: tables of the configuration file.",
            "prices": "Prices of your own in US dollars a million tokens: tables of the configuration file.",
        },
    ),
    Group(
        "Citations",
        "What counts as a citation, and what a wrong or missing one costs.",
        {
            "citation_mode": "standard reads ranges, names and links too; literal takes ids only as they are written.",
            "invalid_citation_penalty": "Confidence is multiplied by this where a reference names no evidence.",
            "uncited_claim_penalty": "Confidence is multiplied by this where a sentence that asserts cites nothing.",
        },
    ),
    Group(
        "Claims and objections",
        "Which faults of the answer become findings.",
        {
            "strictness": "lenient keeps grave findings only, moderate drops minor ones, strict keeps all.",
            "check_factual": "Whether claims the evidence does not bear become findings.",
            "check_completeness": "Whether what is asked for and in the evidence, but not in the answer, is a finding.",
            "check_contradictions": "Whether claims the evidence speaks against become findings.",
        },
    ),
    Group(
        "Critique of drafts",
        "Drafts that a query pipeline hands over (critique_draft). They are checked by the settings for claims too.",
        {
            "draft_critique": "Whether a pipeline has its drafts checked at all.",
            "draft_auto_revise": "Whether a draft with findings is revised at once.",
            "draft_max_revisions": "How many revisions one draft may take; each is checked anew.",
            "draft_min_length": "Drafts with fewer characters than this pass a pipeline unchecked.",
        },
    ),
    Group(
        "Scores",
        "How the judge's four scores are bounded and weighed. The weights are those of the overall score.",
        {
            "hallucination_faithfulness_cap": "Faithfulness is at most this where something was made up.",
            "uncited_faithfulness_cap": "Faithfulness is at most this with several uncited sentences.",
            "uncited_cap_from": "How many uncited sentences are several.",
            "many_uncited_faithfulness_cap": "Faithfulness is at most this with many uncited sentences.",
            "many_uncited_cap_from": "How many uncited sentences are many.",
            "faithfulness_weight": "Weight of faithfulness: the answer says only what the evidence bears.",
            "relevance_weight": "Weight of relevance: it answers the question.",
            "completeness_weight": "Weight of completeness: it uses what the evidence offers.",
            "reasoning_weight": "Weight of reasoning: its steps hold together.",
            "evaluate": "every scores each iteration, final only the last one, never none.",
        },
    ),
    Group(
        "Loop",
        "When an audit stops revising.",
        {
            "max_iterations": "How many versions of the answer are audited at most, the first included.",
            "improvement_threshold": "It stops when a revision raises quality by less than this.",
            "call_deadline_s": "Seconds that one call to a model may take, over all its tries.",
            "iteration_deadline_s": "Seconds that one iteration may take, its revision included.",
            "loop_deadline_s": "Seconds that a whole run may take; what is finished by then stands.",
            "judge_samples": "How often critic and evaluator, where they are models, judge each answer.",
            "sample_temperature": "How freely they may vary when they judge more than once.",
            "log_texts": "Whether the log at DEBUG may hold answers, critiques and revisions whole.",
        },
    ),
    Group(
        "Screening of abstracts",
        "When the evidence found is good enough, and when more is retrieved.",
        {
            "screening_graders": "Who grades an abstract: “offline”, a model, or several with commas between them.",
            "screening_retrieve": "How many abstracts a round takes from each source.",
            "screening_max_rounds": "After how many rounds the evidence is called insufficient.",
            "screening_required_first": "Quality that the kept abstracts of the first round must reach on average.",
            "screening_required_step": "How much less each further round asks for.",
            "screening_required_least": "No round asks for less than this.",
            "screening_keep_share": "The share of abstracts to keep from which the graders count as agreed.",
            "screening_discard_share": "The share to discard from which more is retrieved in any case.",
            "screening_memory": "Whether what was accepted before may move the required quality a little.",
            "screening_memory_bound": "The most by which memory moves it, up or down.",
            "screening_pubmed_email": "Whom PubMed may write to about the searches made here; it asks for one.",
            "screening_pubmed_address": "Where PubMed's E-utilities are reached.",
        },
    ),
    Group(
        "Who looks",
        "When a person is asked.",
        {
            "review_threshold": "A person looks where confidence in the chosen answer is under this.",
            "max_judge_spread": "A person looks where samples of a judge lie further apart than this.",
            "review_revised": "Whether a person looks at every answer that the loop has revised.",
            "spot_check_share": "The share of answers without findings that a person sees all the same.",
            "spot_check_seed": "The draw of those spot checks: the same seed draws the same cases.",
        },
    ),
)
