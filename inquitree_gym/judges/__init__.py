"""Judges of conclusions: local, by entailment, and by language model."""

from inquitree_gym.judges.llm import LLMJudge
from inquitree_gym.judges.local import LocalJudge, local_judge
from inquitree_gym.judges.nli import CrossEncoderInference, NLIJudge
from inquitree_gym.judges.quality import Judge, Verdict, conclusion_quality, evidence_ratios
from inquitree_gym.judges.records import Judgement, JudgementFile, Judgements, JudgeReply, read_judgements
from inquitree_gym.judges.registry import (
    AsyncJudge,
    JudgedConclusion,
    JudgeOptions,
    judge,
    judge_all,
    load_judge,
    make_judges,
)

__all__ = [
    "AsyncJudge",
    "CrossEncoderInference",
    "Judge",
    "JudgeOptions",
    "JudgeReply",
    "JudgedConclusion",
    "Judgement",
    "JudgementFile",
    "Judgements",
    "LLMJudge",
    "LocalJudge",
    "NLIJudge",
    "Verdict",
    "conclusion_quality",
    "evidence_ratios",
    "judge",
    "judge_all",
    "load_judge",
    "local_judge",
    "make_judges",
    "read_judgements",
]
