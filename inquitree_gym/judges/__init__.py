"""Judges of conclusions: local, by entailment, and by language model."""

from inquitree_gym.judges.claims import split_claims
from inquitree_gym.judges.llm import LLMJudge, Ruling
from inquitree_gym.judges.local import Leads, LocalJudge, local_judge
from inquitree_gym.judges.nli import CrossEncoderInference, NLIJudge
from inquitree_gym.judges.panel import Machine, Panelist, Terms, make_panel, rule_all
from inquitree_gym.judges.quality import (
    FULL,
    NOTHING,
    PARTIAL,
    Judge,
    Verdict,
    conclusion_quality,
    conclusion_reward,
    evidence_ratios,
)
from inquitree_gym.judges.records import Judgement, JudgementFile, Judgements, labelled, read_judgements
from inquitree_gym.judges.spent import Spent

__all__ = [
    "FULL",
    "NOTHING",
    "PARTIAL",
    "CrossEncoderInference",
    "Judge",
    "Judgement",
    "JudgementFile",
    "Judgements",
    "LLMJudge",
    "Leads",
    "LocalJudge",
    "Machine",
    "NLIJudge",
    "Panelist",
    "Ruling",
    "Spent",
    "Terms",
    "Verdict",
    "conclusion_quality",
    "conclusion_reward",
    "evidence_ratios",
    "labelled",
    "local_judge",
    "make_panel",
    "read_judgements",
    "rule_all",
    "split_claims",
]
