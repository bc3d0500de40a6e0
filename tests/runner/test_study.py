"""Studies: what they hold, and what they say when they are at fault."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inquitree_gym.baselines import AGENT_NAMES
from inquitree_gym.baselines.registry import CHAT_SETTINGS
from inquitree_gym.embeddings import DEFAULT_EMBEDDER
from inquitree_gym.engine import Rules
from inquitree_gym.errors import EmbedderError, OptionError, TreeError, UnknownTreeError
from inquitree_gym.llm import ChatModel
from inquitree_gym.runner.growth import differences
from inquitree_gym.runner.specs import EpisodeSpec
from inquitree_gym.runner.study import StudyConfig, make_study, read_study
from inquitree_gym.trees import builtin_ids, dump_tree, load_tree
from tests.servers import KEY
from tests.strategies import make_tree


def test_a_study_is_every_agent_on_every_tree_at_every_level_with_every_seed():
    study = make_study(agents=("oracle", "random"), trees=("paper8", "12"), fake_levels=(0, 10), seeds=3)
    cells = list(study.specs())
    assert len(cells) == len(set(cells)) == len({cell.file_name for cell in cells}) == 2 * 2 * 2 * 3
    assert cells[0] == EpisodeSpec("oracle", "paper8", 0, 0)
    assert cells[-1] == EpisodeSpec("random", "paper12", 10, 2)
    assert cells[-1].file_name == "paper12_random_f10_s2.jsonl"


def test_what_is_not_said_has_a_default():
    study = make_study(agents=("random",))
    assert study.trees == builtin_ids()
    assert (study.fake_levels, study.seeds, study.max_turns) == ((0,), 5, "default")
    assert (study.embedder, study.threshold) == (DEFAULT_EMBEDDER, None)


def test_everything_named_twice_counts_once():
    study = make_study(
        agents=("random", "oracle", "random"), trees=("8", "paper8", "all"), fake_levels=(3, 0, 3), seeds=1
    )
    assert study.agents == ("random", "oracle")
    assert study.fake_levels == (3, 0)
    assert study.trees == ("paper8", *(name for name in builtin_ids() if name != "paper8"))


@pytest.mark.parametrize(
    ("given", "turns"), [("default", "default"), ("3n", 21), (40, 40), ("40", 40), (None, None), ("none", None)]
)
def test_the_turn_limit_of_an_episode(given: object, turns: object):
    study = make_study(agents=("random",), trees=("paper12",), fake_levels=(4,), max_turns=given)
    assert study.options(next(study.specs()), load_tree("paper12")) == {"fake_level": 4, "max_turns": turns}


FAULTS = {
    "agents": (("oracel",), r"agents: .*no agent is called 'oracel' \(did you mean 'oracle'\?\); known: random, "),
    "fake_levels": ((0, 11), r"fake_levels\.1: needs at most 10"),
    "seeds": (0, "seeds: needs at least 1"),
    "first_seed": (10**9 + 1, r"first_seed: needs at most 1e\+09"),
    "max_turns": (0, r"max_turns.*: needs at least 1"),
    "threshold": (1.5, "threshold: needs at most 1"),
    "trees": ((), r"trees: needs at least one entry"),
    "levels": ((1,), "levels: is an unknown setting; remove it"),
}


@pytest.mark.parametrize("setting", FAULTS)
def test_a_fault_names_its_setting(setting: str):
    value, message = FAULTS[setting]
    with pytest.raises(OptionError, match=f"the study cannot be run; .*{message}"):
        make_study(**{"agents": ("random",), setting: value})


def test_all_faults_are_told_at_once():
    with pytest.raises(OptionError) as caught:
        make_study(**{setting: value for setting, (value, _) in FAULTS.items()})
    told = str(caught.value).splitlines()
    assert len(told) == 1
    assert all(f" {setting}" in told[0] for setting in FAULTS)


@pytest.mark.parametrize("max_turns", ["4n", "-1", -1, 2.5, "some"])
def test_a_turn_limit_of_another_kind_is_refused(max_turns: object):
    with pytest.raises(OptionError, match=r"max_turns.*'default' or '3n'"):
        make_study(agents=("random",), max_turns=max_turns)


@pytest.mark.parametrize("level", [-1, 0.5, "many"])
def test_a_fake_level_of_another_kind_is_refused(level: object):
    with pytest.raises(OptionError, match=r"fake_levels\.0"):
        make_study(agents=("random",), fake_levels=(level,))


def test_a_study_needs_an_agent():
    with pytest.raises(OptionError, match="agents: is missing"):
        make_study(trees=("paper8",))
    with pytest.raises(OptionError, match="agents: needs at least one entry"):
        make_study(agents=())


def test_unknown_and_undistributed_trees_are_told_before_anything_is_played():
    with pytest.raises(UnknownTreeError, match="no tree has the id 'papper8'"):
        make_study(agents=("random",), trees=("paper8", "papper8"))
    with pytest.raises(UnknownTreeError, match="'paper6' is in the paper pool but its tree may not be distributed"):
        make_study(agents=("random",), trees=("6",))


def test_a_faulty_tree_file_is_told_before_anything_is_played(tmp_path: Path):
    (tmp_path / "mine.json").write_text('{"format": "inquitree/1"}')
    with pytest.raises(TreeError, match=r"mine\.json.*faults"):
        make_study(agents=("random",), trees=(str(tmp_path / "mine.json"),))


def test_a_tree_of_ones_own_is_named_by_its_path(tmp_path: Path):
    file = tmp_path / "mine.json"
    file.write_text(dump_tree(make_tree([[]], [1], tree_id="mine")))
    study = make_study(agents=("random",), trees=(str(file),), seeds=1)
    assert [cell.file_name for cell in study.specs()] == ["mine_random_f0_s0.jsonl"]


def test_two_trees_whose_logs_would_have_one_name_are_refused(tmp_path: Path):
    files = [tmp_path / name / "paper8.json" for name in ("one", "other")]
    for trees in ((str(files[0]), str(files[1])), ("8", str(files[0]))):
        with pytest.raises(OptionError, match=r"trees: .*' and '.*paper8\.json' would share their logs; rename one"):
            make_study(agents=("random",), trees=trees)


def test_trees_are_kept_by_evidence_tier(tmp_path: Path):
    tiers = {name: load_tree(name).provenance.tier for name in builtin_ids()}
    for kept in (["A"], ["B", "C"]):
        expected = tuple(name for name, tier in tiers.items() if tier in kept)
        assert make_study(agents=("random",), tiers=kept).trees == expected
    one = next(name for name, tier in tiers.items() if tier == "A")
    assert make_study(agents=("random",), trees=(one, "paper11"), tiers=("A",)).trees == (one,)
    file = tmp_path / "study.toml"
    file.write_text('agents = ["random"]\ntiers = ["A"]\n')
    assert read_study(file) == make_study(agents=("random",), tiers=["A"])


@pytest.mark.parametrize("tiers", [["D"], "A", [], 3, [["A"]]])
def test_an_unknown_tier_is_refused(tiers: object):
    with pytest.raises(OptionError, match=r"the study cannot be run; tiers: needs a list of A, B, C, not "):
        make_study(agents=("random",), tiers=tiers)


def test_tiers_that_leave_no_tree_are_refused(tmp_path: Path):
    file = tmp_path / "mine.json"
    file.write_text(dump_tree(make_tree([[]], [1], tree_id="mine")))
    with pytest.raises(OptionError, match="none of its trees has the evidence tier A or B"):
        make_study(agents=("random",), trees=(str(file),), tiers=("A", "B"))


def test_an_unknown_embedder_is_told_before_anything_is_played():
    with pytest.raises(EmbedderError, match="no embedder is called 'all-minilm'"):
        make_study(agents=("random",), embedder="all-minilm")


def test_an_embedder_without_a_calibrated_threshold_needs_one():
    name = "litellm:text-embedding-3-small"
    with pytest.raises(
        OptionError, match=f"no threshold has been calibrated for the embedder '{name}'; give the study a threshold"
    ):
        make_study(agents=("random",), embedder=name)
    assert make_study(agents=("random",), embedder=name, threshold=0.4).threshold == 0.4


def test_rules_of_a_study_reach_its_episodes(tmp_path: Path):
    file = tmp_path / "study.toml"
    file.write_text('agents = ["random"]\ntrees = ["8"]\nrules = { on_tie = "ask", tie_margin = 0.1, fake_key = 1 }\n')
    study = read_study(file)
    options = study.options(next(study.specs()), load_tree("paper8"))
    assert options == {"on_tie": "ask", "tie_margin": 0.1, "fake_key": 1, "fake_level": 0, "max_turns": "default"}
    told = list(differences(study, make_study(agents=("random",), trees=("8",), rules={"tie_margin": 0.1})))
    assert told == ["rules on_tie is ask there and nearest here", "rules fake_key is 1 there and 2 here"]


@pytest.mark.parametrize(
    ("written", "overrides"),
    [
        ('rules = "paper"', {}),
        ('rules = { preset = "paper", decisions = "phrases", study_turn = true }',
         {"decisions": "phrases", "study_turn": True}),
    ],
)  # fmt: skip
def test_a_study_takes_a_preset_and_single_rules_override_it(tmp_path: Path, written: str, overrides: dict):
    file = tmp_path / "study.toml"
    file.write_text(f'agents = ["random"]\ntrees = ["8"]\n{written}\n')
    study = read_study(file)
    played = Rules().override(study.options(next(study.specs()), load_tree("paper8")))
    assert played == Rules.preset("paper").override(overrides)
    assert study.prompts_name == "paper"
    assert StudyConfig.model_validate_json(study.model_dump_json()) == study
    told = list(differences(study, make_study(agents=("random",), trees=("8",))))
    assert "prompts is paper there and default here" in told
    assert "rules redo_turn is true there and false here" in told
    spelled = make_study(agents=("random",), trees=("8",), rules=study.rules | {"redo_turn": True}, prompts="paper")
    assert list(differences(study, spelled)) == [], "the same in other words"


def test_prompts_of_a_study_go_before_those_of_its_preset(tmp_path: Path):
    file = tmp_path / "study.toml"
    file.write_text('agents = ["random"]\ntrees = ["8"]\nrules = "paper"\nprompts = "default"\n')
    assert read_study(file).prompts_name == "default"
    plain = make_study(agents=("random",), trees=("8",))
    assert plain.prompts_name == "default"
    paper = make_study(agents=("random",), trees=("8",), prompts="paper")
    assert paper.prompts_name == "paper"
    assert list(differences(plain, paper)) == ["prompts is default there and paper here"]


def test_the_default_preset_is_no_difference():
    plain, named = (make_study(agents=("random",), trees=("8",), **rules) for rules in ({}, {"rules": "default"}))
    assert list(differences(plain, named)) == []


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("papers", "unknown preset 'papers' .did you mean 'paper'"),
        ({"preset": "paper", "rules": "paper"}, "unknown option 'rules'"),
        ({"on_ties": "ask"}, "unknown option 'on_ties' .did you mean 'on_tie'"),
        ({"tie_margin": 3}, "tie_margin is a number from 0 to 2"),
        ({"max_turns": 9}, "max_turns cannot be among the rules of a study"),
    ],
)
def test_rules_of_a_study_are_checked(rules: dict, message: str):
    with pytest.raises(OptionError, match=message):
        make_study(agents=("random",), rules=rules)


def test_a_study_does_not_change():
    with pytest.raises(ValueError, match="frozen"):
        make_study(agents=("random",)).seeds = 3


def test_a_study_is_the_same_after_json():
    models = [{"model": "gpt-4o-mini", "temperature": "none", "seed": 3}, LOCAL]
    study = make_study(
        agents=AGENT_NAMES, models=models, trees=("paper8",), fake_levels=(1, 2), seeds=2, max_turns="none"
    )
    assert StudyConfig.model_validate_json(study.model_dump_json()) == study


# Models


LOCAL = {
    "model": "Qwen/Qwen2.5-7B-Instruct", "name": "qwen", "base_url": "http://localhost:8000/v1", "temperature": 0.7,
    "reasoning_effort": "low", "seed": 11, "max_tokens": 2000, "timeout": 60.0, "retries": 1, "api_key_env": "MY_KEY",
    "context": 5000, "belief": True, "requests_per_minute": 30.0, "tokens_per_minute": 9e4,
}  # fmt: skip


def test_agents_that_ask_a_model_are_crossed_with_models_and_others_are_not():
    study = make_study(agents=("random", "sceptic", "llm"), models=[{"model": "gpt-4o"}, LOCAL], trees=("8",), seeds=2)
    cells = list(study.specs())
    assert [(cell.agent, cell.model) for cell in cells if cell.seed == 0] == [
        ("random", ""), ("sceptic", "gpt-4o"), ("sceptic", "qwen"), ("llm", "gpt-4o"), ("llm", "qwen"),
    ]  # fmt: skip
    assert len(cells) == len({cell.file_name for cell in cells}) == 10
    assert cells[-1].file_name == "paper8_llm_qwen_f0_s1.jsonl"
    assert [cell.player for cell in cells[::2]] == [
        "random", "sceptic gpt-4o", "sceptic qwen", "llm gpt-4o", "llm qwen",
    ]  # fmt: skip


def test_a_model_has_every_setting_of_its_table():
    (model,) = make_study(agents=("llm",), models=[LOCAL], trees=("8",)).models
    assert model.model_dump() == LOCAL | {"memory": "none", "reply": "plain"}
    chat = model.chat_model()
    assert {name: getattr(chat, name) for name in CHAT_SETTINGS} == {name: LOCAL[name] for name in CHAT_SETTINGS}


def test_what_is_not_said_of_a_model_is_as_for_a_model_alone():
    (model,) = make_study(agents=("llm",), models=[{"model": "gpt-4o"}], trees=("8",)).models
    assert model.chat_model() == ChatModel("gpt-4o")
    assert model.context is None


@pytest.mark.parametrize(
    ("settings", "label", "part"),
    [
        ({"model": "openai/gpt-5", "reasoning_effort": "low"}, "openai/gpt-5 (low)", "openai-gpt-5-low"),
        ({"model": "openai/gpt-5", "reasoning_effort": "low", "name": "five"}, "five", "five"),
        ({"model": "../../etc/passwd"}, "../../etc/passwd", "etc-passwd"),
    ],
)
def test_a_model_is_called_by_its_name_in_logs(settings: dict, label: str, part: str):
    study = make_study(agents=("llm",), models=[settings], trees=("8",), seeds=1)
    (cell,) = study.specs()
    assert (cell.model, cell.file_name) == (label, f"paper8_llm_{part}_f0_s0.jsonl")


MODEL_FAULTS = {
    "none for an agent": ((), ("llm", "random"), r"agents that ask a model \(llm\) need one: give --model"),
    "no agent for one": (("a",), ("random",), r"no agent asks the models \(a\); add llm or sceptic to the agents"),
    "two of one name": (("a", "a"), ("llm",), r"models: several models would share their logs: 'a', 'a'; give each"),
    "two of one file": (("x/a", "X:A"), ("llm",), r"models: several models would share their logs: 'x/a', 'X:A'"),
    "no name": (("  ",), ("llm",), r"models\.0: the model is called '  '; give it a name with letters or digits"),
}


@pytest.mark.parametrize("fault", MODEL_FAULTS)
def test_models_that_do_not_fit_are_told(fault: str):
    models, agents, message = MODEL_FAULTS[fault]
    with pytest.raises(OptionError, match=f"the study cannot be run; .*{message}"):
        make_study(agents=agents, models=[{"model": model} for model in models], trees=("8",))


def test_two_episodes_whose_logs_would_have_one_name_are_refused(tmp_path: Path):
    file = tmp_path / "paper8_llm.json"
    file.write_text(dump_tree(make_tree([[]], [1], tree_id="mine")))
    with pytest.raises(OptionError, match=r"llm random on 'paper8' and random on '.*paper8_llm\.json' would share"):
        make_study(agents=("llm", "random"), models=[{"model": "random"}], trees=("8", str(file)))


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("temperature", -1, r"models\.0: invalid settings of the chat model 'm': temperature is a number from 0"),
        ("temperature", "hot", r"models\.0\.temperature: needs a number"),
        ("base_url", "ftp://x", r"models\.0: .*base_url is http\(s\)://HOST/PATH"),
        ("context", 0, r"models\.0\.context: needs at least 1"),
        ("requests_per_minute", 0, r"models\.0\.requests_per_minute: needs more than 0"),
        ("tokens_per_minute", float("inf"), r"models\.0\.tokens_per_minute: needs a finite number"),
        ("name", "x" * 61, r"models\.0\.name: has more than 60 characters"),
        ("prompt", "x", r"models\.0\.prompt: is an unknown setting; remove it"),
    ],
)
def test_a_setting_of_a_model_at_fault_is_named(setting: str, value: object, message: str):
    with pytest.raises(OptionError, match=message):
        make_study(agents=("llm",), models=[{"model": "m", setting: value}], trees=("8",))


@pytest.mark.parametrize(
    "misplaced", [{"api_key": KEY}, {"api_key_env": KEY}, {"base_url": f"https://me:{KEY}@host/v1"}]
)
def test_a_key_in_the_wrong_place_is_refused_and_not_shown(misplaced: dict):
    with pytest.raises(OptionError) as caught:
        make_study(agents=("llm",), models=[{"model": "m", **misplaced}], trees=("8",))
    assert KEY not in str(caught.value)


def test_a_study_of_the_same_episodes_may_have_other_circumstances():
    def study(**changed: object) -> StudyConfig:
        return make_study(agents=("llm",), models=[LOCAL | changed], trees=("8",))

    for setting in ("timeout", "retries", "requests_per_minute", "tokens_per_minute", "max_tokens"):
        assert list(differences(study(**{setting: 7}), study())) == []
    assert list(differences(study(api_key_env="OTHER"), study())) == []
    for setting, other in {
        "temperature": 0,
        "context": 6000,
        "belief": False,
        "seed": 1,
    }.items():
        (told,) = differences(study(**{setting: other}), study())
        assert re.fullmatch(rf"model '.*', setting {setting} is .* there and .* here", told)
    assert list(differences(study(name="n"), study())) == [], "another name is another row"


def test_models_are_read_from_toml(tmp_path: Path):
    file = tmp_path / "models.toml"
    file.write_text(
        'agents = ["llm"]\ntrees = ["8"]\n[[models]]\nmodel = "gpt-4o"\ntemperature = "none"\nmax_tokens = "none"\n'
        '[[models]]\nmodel = "llama3.1"\nbase_url = "http://localhost:11434/v1"\n'
    )
    first, second = read_study(file).models
    assert (first.temperature, first.max_tokens) == (None, None)
    assert second.base_url == "http://localhost:11434/v1"


TOML = """
agents = ["random", "retrieval"]
trees = ["10", "paper12"]
fake_levels = [0, 3]
seeds = 2
max_turns = "3n"
threshold = 0.35
"""


def test_a_study_is_read_from_toml(tmp_path: Path):
    file = tmp_path / "vigilance.toml"
    file.write_text(TOML)
    assert read_study(file) == make_study(
        agents=("random", "retrieval"), trees=("paper10", "paper12"), fake_levels=(0, 3), seeds=2, max_turns="3n",
        threshold=0.35,
    )  # fmt: skip


def test_toml_can_say_that_there_is_no_turn_limit(tmp_path: Path):
    file = tmp_path / "endless.toml"
    file.write_text('agents = ["oracle"]\nmax_turns = "none"\n')
    assert read_study(str(file)).max_turns is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"agents = 3 4", r"the study '.*s\.toml' is not TOML: .*line 1"),
        (b'agents = ["\xff"]', r"the study '.*s\.toml' is not TOML: .*utf-8"),
        (b'agents = "random"', "agents: needs a list"),
        (b"agents = " + b"[" * 10_000, r"the study '.*s\.toml' is not TOML: maximum recursion depth"),
        (b"seeds = " + b"9" * 5_000, r"the study '.*s\.toml' is not TOML: Exceeds the limit"),
        (
            b'agents = ["random"]\nseeds = 1_000_000_000',
            "18,000,000,000 episodes are more than the 1,000,000",
        ),
        (b'agent = ["random"]', "agents: is missing; agent: is an unknown setting; remove it"),
        (b'agents = ["random"]\nfake_levels = [12]', r"fake_levels\.0: needs at most 10"),
    ],
)
def test_a_study_file_at_fault(tmp_path: Path, content: bytes, message: str):
    (tmp_path / "s.toml").write_bytes(content)
    with pytest.raises(OptionError, match=message):
        read_study(tmp_path / "s.toml")


@pytest.mark.e2e
def test_a_study_has_at_most_a_million_episodes():
    assert make_study(agents=("random", "oracle"), trees=("2",), seeds=500_000).seeds == 500_000
    with pytest.raises(OptionError, match=r"1,000,002 episodes are more than .* choose fewer seeds"):
        make_study(agents=("random", "oracle"), trees=("2",), seeds=500_001)


def test_a_missing_study_file(tmp_path: Path):
    with pytest.raises(OptionError, match=r"cannot read the study '.*none\.toml': No such file"):
        read_study(tmp_path / "none.toml")


@pytest.mark.parametrize("file", sorted(Path(__file__).parents[2].glob("studies/*.toml")), ids=lambda file: file.name)
def test_every_shipped_study_can_be_run(file: Path):
    assert list(read_study(file).specs())
