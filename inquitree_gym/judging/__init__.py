"""Judges of the texts that agents write: the parts that they share, and judges by name."""

from typing import TYPE_CHECKING

from inquitree_gym._lazy import lazy

if TYPE_CHECKING:
    from inquitree_gym.inquiry.judges.llm import JudgeOptions, LLMJudge
    from inquitree_gym.inquiry.judges.nli import NLIJudge
    from inquitree_gym.inquiry.judges.quality import Judge, Verdict, conclusion_quality, evidence_ratios
    from inquitree_gym.inquiry.judging import JudgedConclusion, judge
    from inquitree_gym.judging.judgement import AsyncJudge, InProcessJudge, Judgement, JudgeReply
    from inquitree_gym.judging.nli import CrossEncoderInference
    from inquitree_gym.judging.registry import ChatOptions, judge_all, load_judge, make_judges
    from inquitree_gym.judging.stored import JudgementFile, Judgements, StoredJudgements, read_judgements

__all__ = [
    "AsyncJudge",
    "ChatOptions",
    "CrossEncoderInference",
    "InProcessJudge",
    "Judge",
    "JudgeOptions",
    "JudgeReply",
    "JudgedConclusion",
    "Judgement",
    "JudgementFile",
    "Judgements",
    "LLMJudge",
    "NLIJudge",
    "StoredJudgements",
    "Verdict",
    "conclusion_quality",
    "evidence_ratios",
    "judge",
    "judge_all",
    "load_judge",
    "make_judges",
    "read_judgements",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "judging.judgement": "AsyncJudge InProcessJudge Judgement JudgeReply",
        "judging.nli": "CrossEncoderInference",
        "judging.stored": "JudgementFile Judgements StoredJudgements read_judgements",
        "judging.registry": "ChatOptions judge_all load_judge make_judges",
        "inquiry.judging": "JudgedConclusion judge",
        "inquiry.judges.quality": "Judge Verdict conclusion_quality evidence_ratios",
        "inquiry.judges.llm": "JudgeOptions LLMJudge",
        "inquiry.judges.nli": "NLIJudge",
    },
)
