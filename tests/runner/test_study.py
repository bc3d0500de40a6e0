"""Studies: what they hold, and what they say when they are at fault."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.baselines import AGENT_NAMES
from inquitree_gym.cli.output import REPLY_TOKENS, reply_limit
from inquitree_gym.embeddings import DEFAULT_EMBEDDER
from inquitree_gym.errors import InquiTreeError, OptionError
from inquitree_gym.inquiry.engine import Rules
from inquitree_gym.llm import ChatModel
from inquitree_gym.runner.check import make_study, read_study
from inquitree_gym.runner.growth import differences
from inquitree_gym.runs.specs import CHAT_SETTINGS, EpisodeSpec
from inquitree_gym.runs.study import StudyConfig
from inquitree_gym.trees import builtin_ids, dump_tree, load_tree
from tests.servers import KEY
from tests.strategies import make_tree

LOCAL = {
    "model": "Qwen/Qwen2.5-7B-Instruct", "name": "qwen", "base_url": "http://localhost:8000/v1", "temperature": 0.7,
    "reasoning_effort": "low", "seed": 11, "max_tokens": 2000, "timeout": 60.0, "retries": 1, "api_key_env": "MY_KEY",
    "context": 5000, "belief": True, "requests_per_minute": 30.0, "tokens_per_minute": 9e4,
}  # fmt: skip


def made(**settings: Any) -> StudyConfig:
    return make_study(**{"agents": ("random",), **settings})


def written(folder: Path, content: str) -> StudyConfig:
    (folder / "study.toml").write_text(content)
    return read_study(folder / "study.toml")


@pytest.fixture
def mine(tmp_path: Path) -> str:
    """The path of a tree of one's own."""
    file = tmp_path / "paper8_llm.json"
    file.write_text(dump_tree(make_tree([[]], [1], tree_id="mine")))
    return str(file)


def test_a_study_is_every_agent_on_every_tree_at_every_level_with_every_seed(mine: str):
    study = make_study(agents=("oracle", "random"), trees=("paper8", "12"), fake_level=(0, 10), seeds=3)
    cells = list(study.specs())
    assert len(cells) == len(set(cells)) == len({cell.file_name for cell in cells}) == 2 * 2 * 2 * 3
    assert cells[0] == EpisodeSpec("oracle", "paper8", (("fake_level", 0),), 0)
    assert cells[-1] == EpisodeSpec("random", "paper12", (("fake_level", 10),), 2)
    assert cells[-1].file_name == "paper12_random_f10_s2.jsonl"
    assert [cell.file_name for cell in made(trees=(mine,), seeds=1).specs()] == ["paper8_llm_random_f0_s0.jsonl"]


def test_what_is_not_said_has_a_default_and_what_is_named_twice_counts_once():
    study = made()
    assert study.trees == builtin_ids()
    assert (study.settings.fake_level, study.seeds, study.settings.max_turns) == ((0,), 5, "3n")
    assert (study.settings.embedder, study.settings.threshold) == (DEFAULT_EMBEDDER, None)
    study = made(agents=("random", "oracle", "random"), trees=("8", "paper8", "all"), fake_level=(3, 0, 3))
    assert (study.agents, study.settings.fake_level) == (("random", "oracle"), (3, 0))
    assert study.trees == ("paper8", *(name for name in builtin_ids() if name != "paper8"))


@pytest.mark.parametrize(
    ("setting", "turns"), [("3n", "3n"), ("3n + 3", "3n+3"), (40, 40), ("40", 40), (None, None), ("none", None)]
)
def test_the_turn_limit_of_an_episode(setting: object, turns: object):
    study = made(trees=("paper12",), fake_level=(4,), max_turns=setting)
    assert study.options(next(study.specs()), load_tree("paper12")) == {"fake_level": 4, "max_turns": turns}


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "level too high": ({"fake_level": (0, 11)}, r"fake_level\.1: needs at most 10"),
    "level of another kind": ({"fake_level": ("many",)}, r"fake_level\.0"),
    "no seeds": ({"seeds": 0}, "seeds: needs at least 1"),
    "first seed": ({"first_seed": 10**9 + 1}, r"first_seed: needs at most 1e\+09"),
    "no turns": ({"max_turns": 0}, r"max_turns.* must be an integer from 1.*got 0"),
    "turns in other words": ({"max_turns": "default"}, r"max_turns.*formula such as '3n'.*got 'default'"),
    "threshold": ({"threshold": 1.5}, "threshold: needs at most 1"),
    "no trees": ({"trees": ()}, r"trees: needs at least one entry"),
    "unknown setting": ({"levels": (1,)}, "levels: is an unknown setting; remove it"),
    "unknown agent": ({"agents": ("oracel",)}, r"agents: no agent is called 'oracel' \(did you mean 'oracle'\?\)"),
    "no agents": ({"agents": ()}, "agents: needs at least one entry"),
    "unknown tree": ({"trees": ("paper8", "papper8")}, "no tree has the id 'papper8'"),
    "undistributed tree": ({"trees": ("6",)}, "'paper6' is in the paper pool but its tree may not be distributed"),
    "one name for two": ({"trees": ("8", "x/paper8.json")}, r"trees: .*' and '.*paper8\.json' would share their logs"),
    "unknown tier": ({"tiers": ["D"]}, r"tiers must be a list of A, B, C, got "),
    "tiers as text": ({"tiers": "A"}, r"tiers must be a list of A, B, C, got "),
    "unknown embedder": ({"embedder": "all-reader"}, "no embedder is called 'all-reader'"),
    "no threshold": ({"embedder": "litellm:x"}, "no threshold has been calibrated for the embedder 'litellm:x'; give"),
    "unknown preset": ({"rules": "papers"}, "unknown preset 'papers' .did you mean 'paper'"),
    "unknown rule": ({"rules": {"feedbak": "hint"}}, "unknown option 'feedbak' .did you mean 'feedback'"),
    "rule out of range": ({"rules": {"redo_turn": 3}}, "redo_turn must be True or False, got 3"),
    "setting among rules": ({"rules": {"max_turns": 9}}, "max_turns cannot be among the rules"),
    "too many": ({"trees": ("2",), "seeds": 1_000_001}, r"1,000,001 episodes are more than .* choose fewer seeds"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told_before_anything_is_played(fault: str):
    settings, told = FAULTS[fault]
    with pytest.raises(InquiTreeError, match=told) as caught:
        made(**settings)
    assert "\n" not in str(caught.value)


def test_all_faults_are_told_at_once(tmp_path: Path):
    names = ("no seeds", "first seed", "no turns", "threshold", "no trees", "unknown setting")
    settings = {name: value for fault in names for name, value in FAULTS[fault][0].items()}
    with pytest.raises(OptionError) as caught:
        made(**settings)
    (told,) = str(caught.value).splitlines()
    assert all(f" {setting}" in told for setting in settings)
    with pytest.raises(OptionError, match="agents: is missing"):
        make_study(trees=("paper8",))
    (tmp_path / "mine.json").write_text('{"format": "inquitree/1"}')
    with pytest.raises(InquiTreeError, match=r"mine\.json.*faults"):
        made(trees=(str(tmp_path / "mine.json"),))


def test_trees_are_kept_by_evidence_tier(tmp_path: Path, mine: str):
    tiers = {name: load_tree(name).provenance.tier for name in builtin_ids()}
    for kept in (["A"], ["B", "C"]):
        assert made(tiers=kept).trees == tuple(name for name, tier in tiers.items() if tier in kept)
    assert written(tmp_path, 'agents = ["random"]\ntiers = ["A"]\n') == made(tiers=["A"])
    with pytest.raises(OptionError, match="none of its trees has the evidence tier A or B"):
        made(trees=(mine,), tiers=("A", "B"))


def test_an_embedder_without_a_calibrated_threshold_takes_one():
    assert made(embedder="litellm:text-embedding-3-small", threshold=0.4).settings.threshold == 0.4


@pytest.mark.parametrize(
    ("rules", "overrides"),
    [
        ('rules = "paper"', {"max_turns": "11n"}),
        ('rules = { preset = "paper", decisions = "phrases", bare_decisions = true }',
         {"decisions": "phrases", "bare_decisions": True, "max_turns": "11n"}),
    ],
)  # fmt: skip
def test_a_study_takes_a_preset_and_single_rules_override_it(tmp_path: Path, rules: str, overrides: dict):
    study = written(tmp_path, f'agents = ["random"]\ntrees = ["8"]\n{rules}\n')
    played = Rules().override(study.options(next(study.specs()), load_tree("paper8")))
    assert played == Rules.preset("paper").override(overrides)
    assert study.prompts_name == "paper"
    assert StudyConfig.model_validate_json(study.model_dump_json()) == study
    told = list(differences(study, made(trees=("8",))))
    assert {
        "the run has prompts=paper, this study prompts=default",
        "the run has rules redo_turn=true, this study rules redo_turn=false",
    } <= set(told)
    spelled = made(trees=("8",), rules=study.settings.rules | {"redo_turn": True}, prompts="paper")
    assert list(differences(study, spelled)) == [], "the same in other words"
    own = written(tmp_path, f'agents = ["random"]\ntrees = ["8"]\n{rules}\nprompts = "default"\n')
    assert own.prompts_name == "default", "prompts of a study go before those of its preset"


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (
            {"rules": {"redo_turn": True}},
            {"rules": {"redo_turn": False}},
            ["the run has rules redo_turn=true, this study rules redo_turn=false"],
        ),
        ({}, {"prompts": "paper"}, ["the run has prompts=default, this study prompts=paper"]),
        ({}, {"rules": "default"}, []),
    ],
)
def test_studies_differ_in_what_is_played(one: dict, other: dict, told: list[str]):
    assert list(differences(made(trees=("8",), **one), made(trees=("8",), **other))) == told


def test_a_study_does_not_change_and_is_the_same_after_json():
    models = [{"model": "gpt-4o-mini", "temperature": "none", "seed": 3}, LOCAL]
    study = make_study(
        agents=AGENT_NAMES, models=models, trees=("paper8",), fake_level=(1, 2), seeds=2, max_turns="none"
    )
    assert StudyConfig.model_validate_json(study.model_dump_json()) == study
    with pytest.raises(ValueError, match="frozen"):
        study.seeds = 3


# Models


def test_agents_that_ask_a_model_are_crossed_with_models_and_others_are_not():
    study = make_study(agents=("random", "sceptic", "llm"), models=[{"model": "gpt-4o"}, LOCAL], trees=("8",), seeds=2)
    cells = list(study.specs())
    assert [(cell.agent, cell.model) for cell in cells if cell.seed == 0] == [
        ("random", ""), ("sceptic", "gpt-4o"), ("sceptic", "qwen"), ("llm", "gpt-4o"), ("llm", "qwen"),
    ]  # fmt: skip
    assert len(cells) == len({cell.file_name for cell in cells}) == 10
    assert cells[-1].file_name == "paper8_llm_qwen_f0_s1.jsonl"
    assert [cell.player for cell in cells[::4]] == ["random", "sceptic qwen", "llm qwen"]


def test_a_model_has_every_setting_of_its_table_and_otherwise_those_of_a_model_alone(tmp_path: Path):
    (model,) = make_study(agents=("llm",), models=[LOCAL], trees=("8",)).models
    assert model.model_dump() == LOCAL
    chat = model.chat_model()
    assert {name: getattr(chat, name) for name in CHAT_SETTINGS} == {name: LOCAL[name] for name in CHAT_SETTINGS}
    tables = '[[models]]\nmodel = "gpt-4o"\n[[models]]\nmodel = "m"\ntemperature = "none"\nmax_tokens = "none"\n'
    plain, none = written(tmp_path, f'agents = ["llm"]\ntrees = ["8"]\n{tables}').models
    assert (plain.chat_model(), plain.context) == (ChatModel("gpt-4o"), None)
    assert {*CHAT_SETTINGS, "clock"} == {setting.name for setting in fields(ChatModel) if setting.init}
    assert reply_limit(REPLY_TOKENS) == plain.max_tokens == ChatModel.max_tokens
    assert (none.temperature, none.max_tokens) == (None, None)


@pytest.mark.parametrize(
    ("settings", "label", "part"),
    [
        ({"model": "openai/gpt-5", "reasoning_effort": "low"}, "openai/gpt-5 (low)", "openai-gpt-5-low"),
        ({"model": "openai/gpt-5", "reasoning_effort": "low", "name": "five"}, "five", "five"),
        ({"model": "../../etc/passwd"}, "../../etc/passwd", "etc-passwd"),
    ],
)
def test_a_model_is_called_by_its_name_in_logs(settings: dict, label: str, part: str):
    (cell,) = make_study(agents=("llm",), models=[settings], trees=("8",), seeds=1).specs()
    assert (cell.model, cell.file_name) == (label, f"paper8_llm_{part}_f0_s0.jsonl")


MODEL_FAULTS: list[tuple[list[dict[str, Any]], tuple[str, ...], str]] = [
    ([], ("llm", "random"), r"agents that ask a model \(llm\) need one: give --model"),
    ([{"model": "a"}], ("random",), r"no agent asks the models \(a\); add llm or sceptic or recall to the agents"),
    ([{"model": "a"}] * 2, ("llm",), r"models: several models would share their logs: 'a', 'a'; give each"),
    ([{"model": "x/a"}, {"model": "X:A"}], ("llm",), r"models: several models would share their logs: 'x/a', 'X:A'"),
    ([{"model": "  "}], ("llm",), r"models\.0: the model is called '  '; give it a name with letters or digits"),
    *(
        ([{"model": "m", name: value}], ("llm",), told)
        for name, value, told in [
            (
                "temperature",
                -1,
                r"models\.0: invalid settings of the chat model 'm': temperature must be a number from 0",
            ),
            ("temperature", "hot", r"models\.0\.temperature: needs a number"),
            ("base_url", "ftp://x", r"models\.0: .*base_url must be http\(s\)://HOST/PATH"),
            ("context", 0, r"models\.0\.context: needs at least 1"),
            ("requests_per_minute", 0, r"models\.0\.requests_per_minute: needs more than 0"),
            ("tokens_per_minute", float("inf"), r"models\.0\.tokens_per_minute: needs a finite number"),
            ("name", "x" * 61, r"models\.0\.name: has more than 60 characters"),
            ("prompt", "x", r"models\.0\.prompt: is an unknown setting; remove it"),
            ("api_key", KEY, "models"),
            ("api_key_env", KEY, "models"),
            ("base_url", f"https://me:{KEY}@host/v1", "models"),
        ]
    ),
]


@pytest.mark.parametrize(("models", "agents", "told"), MODEL_FAULTS)
def test_models_at_fault_are_told_and_no_key_is_shown(models: list[dict], agents: tuple[str, ...], told: str):
    with pytest.raises(OptionError, match=told) as caught:
        make_study(agents=agents, models=models, trees=("8",))
    assert KEY not in str(caught.value)


def test_two_episodes_whose_logs_would_have_one_name_are_refused(mine: str):
    with pytest.raises(OptionError, match=r"llm random on 'paper8' and random on '.*paper8_llm\.json' would share"):
        make_study(agents=("llm", "random"), models=[{"model": "random"}], trees=("8", mine))


def test_a_study_of_the_same_episodes_may_have_other_circumstances():
    def study(**changed: object) -> StudyConfig:
        return make_study(agents=("llm",), models=[LOCAL | changed], trees=("8",))

    same = {"timeout": 7, "retries": 7, "requests_per_minute": 7, "tokens_per_minute": 7, "max_tokens": 7}
    for setting, other in {**same, "api_key_env": "OTHER", "name": "another row"}.items():
        assert list(differences(study(**{setting: other}), study())) == []
    for setting, other in {"temperature": 0, "context": 6000, "belief": False, "seed": 1}.items():
        (told,) = differences(study(**{setting: other}), study())
        assert re.fullmatch(rf"the run has (model '.*', setting {setting})=.*, this study \1=.*", told)


# Files


def test_a_study_is_read_from_toml(tmp_path: Path):
    content = 'agents = ["random"]\ntrees = ["10", "paper12"]\nfake_level = [0, 3]\nseeds = 2\nmax_turns = "{}"\n'
    for turns in ("3n", "none"):
        found = written(tmp_path, f"{content.format(turns)}threshold = 0.35\n")
        assert found == made(trees=("10", "12"), fake_level=(0, 3), seeds=2, max_turns=turns, threshold=0.35)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"agents = 3 4", r"the study '.*s\.toml' is not TOML: .*line 1"),
        (b'agents = ["\xff"]', r"s\.toml' must be UTF-8 text, got other bytes at 11\."),
        (b'agents = "random"', "agents: needs a list"),
        (b"agents = " + b"[" * 10_000, r"the study '.*s\.toml' is not TOML: maximum recursion depth"),
        (b"seeds = " + b"9" * 5_000, r"the study '.*s\.toml' is not TOML: Exceeds the limit"),
        (b'agents = ["random"]\nseeds = 1_000_000_000', "18,000,000,000 episodes are more than the 1,000,000"),
        (b'agent = ["random"]', "agents: is missing; agent: is an unknown setting; remove it"),
        (None, r"cannot read '.*s\.toml': No such file"),
    ],
)
def test_a_study_file_at_fault(tmp_path: Path, content: bytes | None, message: str):
    if content is not None:
        (tmp_path / "s.toml").write_bytes(content)
    with pytest.raises(OptionError, match=message):
        read_study(tmp_path / "s.toml")


@pytest.mark.parametrize("file", sorted(Path(__file__).parents[2].glob("studies/*.toml")), ids=lambda file: file.name)
def test_every_shipped_study_can_be_run(file: Path):
    assert list(read_study(file).specs())
