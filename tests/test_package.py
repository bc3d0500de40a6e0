"""The public face: names, their homes, and what importing costs."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import platformdirs
import pytest

import inquitree_gym
from inquitree_gym.embeddings.vectors import cache_folder
from inquitree_gym.errors import Fault, OptionError, TreeError, UnknownTreeError

PUBLIC = {
    "inquitree_gym": {
        "Agent", "Embedder", "Episode", "EpisodeScore", "FreeText", "InquiTreeError", "InquiryEnv", "Match", "Rules",
        "Tree", "aplay", "judge", "load_embedder", "load_tree", "make_agent", "match", "play", "read_episode",
        "score_episode",
    },
    "inquitree_gym.baselines": {
        "AGENT_NAMES", "Agent", "Ask", "BASELINE_NAMES", "BaselineAgent", "BayesAgent", "ChatAgent", "CopyistAgent",
        "CoverAgent", "EchoAgent", "GreedyAgent", "HumanAgent", "LLMAgent", "MODEL_AGENT_NAMES", "ModelAgent",
        "OracleAgent", "PROJECTION_AGENT_NAMES", "PolicyAgent", "ProjectingBaseline", "ProjectingLLMAgent",
        "RandomAgent", "RandomMenuAgent", "RandomWordsAgent", "RecallAgent", "RedoUntilTrue", "ReplayAgent",
        "RetrievalAgent", "ScepticAgent", "WorstCaseAgent", "make_agent", "sb3_policy",
    },
    "inquitree_gym.llm": {
        "Budget", "BudgetedChat", "CachedChat", "Chat", "ChatMiddleware", "ChatModel", "Completion",
        "MAX_REPLY", "Message", "MissingKey", "RateLimit", "RateLimitedChat", "RateLimiter", "ReplyCache",
        "Reservation", "SpendingCap", "SystemClock", "Usage", "estimated_tokens", "run_sync", "strip_thinking",
    },
    "inquitree_gym.results": {
        "EpisodeScore", "Estimate", "KindResults", "Measure", "PairedDifference", "ReportOptions", "Score",
        "ScoredRun", "SettingSummary", "Trajectory", "clustered_mean", "compare", "compare_agents", "follow_run",
        "load_run", "paired_difference", "read_trajectory", "score_episode", "summarise", "summary_table", "view_log",
        "view_run", "write_report",
    },
    "inquitree_gym.embeddings": {
        "DEFAULT_EMBEDDER", "Embedder", "LiteLLMEmbedder", "MiniLMEmbedder", "OnnxEmbedder", "ReaderEmbedder",
        "SentenceTransformerEmbedder", "StaticEmbedder", "TextVectors", "TreeVectors", "WordsEmbedder",
        "load_embedder", "tree_vectors",
    },
    "inquitree_gym.inquiry.engine": {
        "Decision", "Engine", "Event", "ObservationKind", "Phase", "Reading", "Reason", "RuleSet", "Rules", "State",
        "event_values", "seed_of_agent", "splitmix64",
    },
    "inquitree_gym.envs": {
        "FreeText", "InquiryBatchEnv", "InquiryEnv", "InquiryVectorEnv", "ProjectionBatchEnv", "ProjectionEnv",
        "ProjectionMenuEnv", "ProjectionRules", "ProjectionVectorEnv", "SyntheticEnv", "SyntheticProjectionEnv",
        "Transition",
    },
    "inquitree_gym.judging": {
        "AsyncJudge", "ChatOptions", "CrossEncoderInference", "InProcessJudge", "Judge", "JudgeOptions", "JudgeReply",
        "JudgedConclusion", "Judgement", "JudgementFile", "Judgements", "LLMJudge", "NLIJudge",
        "StoredJudgements", "Verdict", "conclusion_quality", "evidence_ratios", "judge", "judge_all", "load_judge",
        "make_judges", "read_judgements",
    },
    "inquitree_gym.authoring": {
        "Author", "AuthoredTree", "Finding", "Findings", "PaperDocument", "PaperRecord", "PaperSource", "PaperText",
        "SpringerNature", "disclose", "disclose_paper", "read_document", "read_findings", "read_paper",
        "write_findings",
    },
    "inquitree_gym.runner": {
        "EpisodeSpec", "ModelSettings", "Outcome", "RunOptions", "RunSummary",
        "StopConditions", "StudyConfig", "arun_study", "make_study", "read_study", "run_study",
    },
    "inquitree_gym.trees": {
        "CANARY", "CATALOGUE", "CatalogueEntry", "Difficulty", "Disclosure", "Fault", "HINT_LEVELS",
        "ProjectionTask", "Tree", "WorldSettings", "builtin_ids", "dump_tree", "load_tree", "parse_tree",
        "synthetic_task", "synthetic_tree", "tree_seed", "user_files",
    },
    "inquitree_gym.wrappers": {
        "EmbeddingObservation", "FakeResults", "LogEpisodes", "MenuActions", "RewardShaping", "Transcript", "TurnLimit",
        "VectorRewardShaping",
    },
}  # fmt: skip
"""What users may rely on; a change here is a change of the interface."""


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_these_and_can_be_imported(name: str):
    module = importlib.import_module(name)
    assert set(module.__all__) == PUBLIC[name]
    assert len(module.__all__) == len(set(module.__all__))
    for public in module.__all__:
        value = getattr(module, public)
        assert value is not None
        assert not isinstance(value, ModuleType), f"{name}.{public} is a module, not what it promises"


@pytest.mark.parametrize("name", ["inquitree_gym", "inquitree_gym.envs", "inquitree_gym.trees"])
def test_every_lazy_name_resolves_to_what_its_home_holds(name: str):
    module = importlib.import_module(name)
    homes = dict(zip(module.__getattr__.__code__.co_freevars, module.__getattr__.__closure__, strict=True))
    lazy = homes["homes"].cell_contents
    assert set(lazy) == PUBLIC[name]
    for public, home in lazy.items():
        assert module.__getattr__(public) is getattr(importlib.import_module(home), public)


@pytest.mark.parametrize("name", ["inquitree_gym", "inquitree_gym.envs", "inquitree_gym.trees"])
def test_an_unknown_name_is_an_ordinary_attribute_error(name: str):
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'melody'"):
        importlib.import_module(name).melody  # noqa: B018


def test_a_star_import_brings_the_public_names():
    scope: dict[str, object] = {}
    exec("from inquitree_gym import *", scope)
    assert scope.keys() - {"__builtins__"} == PUBLIC["inquitree_gym"]


def test_the_version_is_the_installed_one():
    assert inquitree_gym.__version__ == version("inquitree-gym")


LIGHT = """
import sys
import inquitree_gym
heavy = {"torch", "transformers", "sentence_transformers", "litellm", "sklearn", "scipy", "pydantic", "jinja2", "typer"}
heavy |= {"datasets", "httpx", "inspect_ai", "mcp", "openenv", "trl", "verifiers"}
print(sorted(heavy & set(sys.modules)))
import gymnasium
gymnasium.spec("InquiTree-paper12-v0")
"""


def test_importing_registers_and_loads_nothing_heavy():
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


def test_errors_cross_processes():
    for error in (
        TreeError("here", [Fault("T102", "s1", "bad")]),
        UnknownTreeError("no such tree"),
        OptionError("unknown"),
    ):
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy)) == (type(error), str(error))


def test_the_tests_keep_out_of_the_users_cache():
    assert cache_folder() != Path(platformdirs.user_cache_dir("inquitree-gym"), "vectors")
