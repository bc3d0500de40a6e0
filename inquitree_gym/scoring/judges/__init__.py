"""Judges besides the local one, offline over logs: by entailment, by asking a model; and how far judges agree."""

from inquitree_gym.scoring.judges.agreement import Agreement, agreement, item_pairs
from inquitree_gym.scoring.judges.llm import LLMJudge, Ruling
from inquitree_gym.scoring.judges.nli import CrossEncoderInference, NLIJudge
from inquitree_gym.scoring.judges.panel import Machine, Panelist, Terms, make_panel, rule_all
from inquitree_gym.scoring.judges.records import Judgement, JudgementFile, Judgements, labelled, read_judgements
from inquitree_gym.scoring.judges.spent import Spent

__all__ = [
    "Agreement",
    "CrossEncoderInference",
    "Judgement",
    "JudgementFile",
    "Judgements",
    "LLMJudge",
    "Machine",
    "NLIJudge",
    "Panelist",
    "Ruling",
    "Spent",
    "Terms",
    "agreement",
    "item_pairs",
    "labelled",
    "make_panel",
    "read_judgements",
    "rule_all",
]
