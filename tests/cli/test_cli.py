"""The command line: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from xml.etree import ElementTree

import pytest

from inquitree_gym.cli import VERBS as HEADINGS
from inquitree_gym.cli import commands, main
from inquitree_gym.cli.tasks import MANY
from inquitree_gym.embeddings import ReaderEmbedder
from inquitree_gym.inquiry.engine import Rules
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.prompts import inquiry_prompts
from inquitree_gym.kinds import kinds
from inquitree_gym.log import read_episode
from inquitree_gym.trees import Tree, builtin_ids, dump_tree, load_tree, parse_tree
from inquitree_gym.trees.lint import lint_tree
from tests.contract.command_line import inquitree
from tests.inquiry.test_inquiry import right_sheet
from tests.strategies import make_tree
from tests.worlds import clean_document

VERBS = ("list", "show", "play", "run", "score", "report", "view", "check")


def flat(text: str) -> str:
    """Return the words of a drawing: without its lines, and wherever its texts were broken."""
    return " ".join(re.sub(r"[│┃├└─━┏┓┗┛┡┩╇┳┴┬┼╭╮╰╯]", " ", text).split())


# The whole


def test_the_console_script_is_this_command_line():
    (script,) = entry_points(group="console_scripts", name="inquitree")
    assert script.load() is main


HELP = """
import sys
from inquitree_gym.cli import main
sys.argv = ["inquitree", "--help"]
try:
    main()
except SystemExit as left:
    heavy = {"torch", "transformers", "litellm", "sentence_transformers", "matplotlib", "pydantic", "jinja2", "rich"}
    heavy &= set(sys.modules)
    print(left.code, sorted(heavy), file=sys.stderr)
"""


@pytest.mark.e2e
def test_help_names_every_verb_and_loads_nothing_heavy():
    done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True)
    assert all(re.search(rf"^\s+{verb}\s+\S", done.stdout, re.MULTILINE) for verb in VERBS)
    assert done.stderr == "0 []\n"


@pytest.mark.e2e
def test_a_foreseen_error_is_one_message_and_status_2_without_a_traceback():
    command = [sys.executable, "-c", "from inquitree_gym.cli import main; main()", "show", "paper6"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "'paper6' is in the paper pool but its tree may not be distributed" in done.stderr
    assert "write a tree file of your own and pass its path" in done.stderr


def test_without_a_verb_there_is_help():
    done = inquitree()
    assert "Usage: " in done.out + done.err
    assert all(verb in done.out + done.err for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_helpful_help(verb: str):
    done = inquitree(verb, "--help")
    assert (done.status, done.err) == (0, "")
    assert re.search(rf"^Usage: .*inquitree {verb}\b", done.out)
    command = commands()[verb]
    assert "".join(command.help.split()) in "".join(done.out.split())
    for parameter in command.params:
        assert parameter.help, f"{parameter.name} does not say what it is for"
        assert "".join(parameter.help.split()) in "".join(done.out.split())


def test_the_overview_says_of_each_verb_what_its_help_begins_with():
    listed = {verb: text for verbs in HEADINGS.values() for verb, (_, text) in verbs.items()}
    listed |= {verb: text for each in kinds() for verb, (_, text) in each.verbs.items()}
    for verb in listed.keys() - {"judge"}:
        command = commands()[verb]
        words = " ".join(command.help.split())
        assert words.startswith(listed[verb].removesuffix(".")), verb


# list


def test_list_shows_every_paper_of_the_pool():
    done = inquitree("list")
    assert (done.status, done.err) == (0, "")
    assert all(re.search(rf"\bpaper{number}\b", done.out) for number in range(1, 31))
    assert "Current Biology" in done.out, "the journal of a paper whose tree may not be distributed"
    assert "dim: a tree that may not be distributed" in flat(done.out)


def test_list_as_json():
    entries = json.loads(inquitree("list", "--json").out)
    assert [entry["id"] for entry in entries] == [f"paper{number}" for number in range(1, 31)]
    assert {entry["id"] for entry in entries if entry["playable"]} == set(builtin_ids())
    paper12 = entries[11]
    tree = load_tree("paper12")
    assert (paper12["n"], paper12["year"], paper12["doi"]) == (7, tree.paper.year, tree.paper.doi)
    assert paper12["title"] == tree.paper.title
    assert (entries[22]["n"], entries[22]["journal"], entries[22]["doi"]) == (5, "Nature Human Behaviour", None)
    assert entries[22]["title"] == "Decoupling geographical constraints from human mobility"
    assert [entry["tier"] for entry in entries if entry["playable"]] == [
        load_tree(name).provenance.tier for name in builtin_ids()
    ]
    assert "tier" in inquitree("list").out


def test_list_shows_trees_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "mine.json").write_text(dump_tree(make_tree([[], [0], [0]], [1, 1, 1], tree_id="mine")))
    monkeypatch.setenv("INQUITREE_TREES", str(tmp_path))
    entry = json.loads(inquitree("list", "--json").out)[-1]
    assert (entry["id"], entry["n"], entry["depth"], entry["width"], entry["playable"]) == ("mine", 3, 2, 2, True)
    assert "A made paper" in inquitree("list").out


def test_a_bad_tree_of_ones_own_does_not_hide_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "broken.json").write_text("{")
    monkeypatch.setenv("INQUITREE_TREES", str(tmp_path))
    done = inquitree("list", "--json")
    assert done.status == 0
    entries = {entry["id"]: entry for entry in json.loads(done.out)}
    assert len(entries) == 31
    assert not entries["broken"]["playable"]
    assert "inquitree check" in entries["broken"]["title"]


def test_no_text_steers_the_terminal(tmp_path: Path):
    done = inquitree("view", tmp_path / "a\x1b]0;owned\x07\u202eb.jsonl")
    assert done.status == 2
    assert r"a\u001b]0;owned\u202eb.jsonl" in done.err
    assert not {"\x1b", "\x07", "\u202e"} & set(done.err)


# show


def test_show_draws_a_tree_in_the_terminal_without_giving_it_away():
    tree = load_tree("paper8")
    done = inquitree("show", "8")
    said = flat(done.out)
    assert done.status == 0
    assert tree.topic in said
    for subtopic in tree.subtopics:
        assert f"{subtopic.id} · {subtopic.name}" in said
        assert subtopic.text in said
        assert all(study.text in said for study in subtopic.studies)
        assert not any(text in said for study in subtopic.studies for text in study.shown_texts)
    assert not any(option in said for item in tree.conclusions for option in item.options)


def test_show_exports_mermaid():
    done = inquitree("show", "paper12", "--mermaid")
    assert done.out.startswith("flowchart TD\n")
    edges = [line for line in done.out.splitlines() if "-->" in line]
    assert len(edges) == sum(len(subtopic.prerequisites) for subtopic in load_tree("paper12").subtopics)


def test_show_exports_svg_and_says_where_on_the_error_stream(tmp_path: Path):
    file = tmp_path / "t.svg"
    done = inquitree("show", "paper8", "--svg", file)
    assert (done.status, done.out) == (0, "")
    assert "written:" in done.err
    root = ElementTree.fromstring(file.read_text())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    drawn = " ".join("".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text"))
    assert all(subtopic.id in drawn for subtopic in load_tree("paper8").subtopics)


def test_show_as_json_is_the_tree():
    assert parse_tree(inquitree("show", "paper12", "--json").out.encode()) == load_tree("paper12")


def test_show_takes_a_path_and_lists_every_fault_of_a_bad_file(tmp_path: Path):
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    tree = make_tree([[], [0]], [1, 1], tree_id="good")
    good.write_text(dump_tree(tree))
    assert "Question 2" in inquitree("show", good).out
    document = tree.model_dump(mode="json")
    document["subtopics"][0]["prerequisites"] = [{"id": "s2", "because": "It needs it."}]
    document["conclusions"][0]["needs"] = [["s9"]]
    bad.write_text(json.dumps(document))
    done = inquitree("show", bad)
    assert (done.status, done.out) == (2, "")
    assert "2 faults" in done.said
    assert "s9" in done.said


# play


def script(*messages: str) -> str:
    """What a person types: each message ends with an empty line."""
    return "".join(f"{message}\n\n" for message in messages)


@pytest.fixture(scope="module")
def paper8() -> Tree:
    return load_tree("paper8")


@pytest.fixture(scope="module")
def moves(paper8: Tree) -> list[str]:
    """A short inquiry: one subtopic, one study, a conclusion that it supports, and an answer to the exam."""
    first = next(subtopic for subtopic in paper8.subtopics if not subtopic.prerequisites)
    needed = {name for item in paper8.conclusions for group in item.needs for name in group}
    study = next(study for study in first.studies if study.id in needed)
    return [first.text, study.text, "draw conclusion", "1. It rises.", "1 A"]


def test_a_person_plays_an_inquiry(paper8: Tree, moves: list[str]):
    (env := InquiryEnv(paper8)).reset(seed=1)
    done = inquitree("play", "8", "--seed", 1, stdin=script(*moves[:4], right_sheet(env)))
    assert done.status == 0, done.err
    said = flat(done.out)
    assert paper8.topic in said
    assert all(move in said for move in moves[:2])
    study = next(study for study in paper8.studies if study.text == moves[1])
    assert any(text in said for text in study.shown_texts)
    score = float(re.search(r"Your score is (\d\.\d\d)", said).group(1))
    assert 0 < score < 1


def test_a_person_is_told_how_a_message_ends_and_how_many_turns_are_left(moves: list[str]):
    said = flat(inquitree("play", "8", "--max-turns", 9, stdin=script(*moves)).out)
    assert said.count("An empty line ends it.") == 1
    states = ("topic", "subtopic", "result", "conclusion", "exam")
    asked = [f"{state} · {turns} turns left >" for state, turns in zip(states, (9, 8, 7, 6, 5), strict=True)]
    places = [said.index(each) for each in asked]
    assert said.index("An empty line ends it.") < places[0]
    assert places == sorted(places)
    unlimited = flat(inquitree("play", "8", "--max-turns", "none", stdin=script(*moves)).out)
    assert "topic >" in unlimited
    levels = flat(inquitree("play", "8", "--env", "projection", stdin=script(*["It rises.", "1 A"] * 3)).out)
    assert "project · 6 turns left >" in levels
    assert "sheet · 1 turn left >" in levels


def test_options_of_play_reach_the_episode(moves: list[str], tmp_path: Path):
    file = tmp_path / "e.jsonl"
    flags = ("--fake-level", 10, "--seed", 5, "--max-turns", 2, "--log", file)
    assert inquitree("play", "paper8", *flags, stdin=script(*moves[:2], *moves[3:])).status == 0
    episode = read_episode(file)
    assert (episode.header.seed, episode.header.rules["fake_level"], episode.header.rules["max_turns"]) == (5, 10, 2)
    assert [turn.event.limit for turn in episode.turns] == [False, True, False, False]
    assert episode.turns[1].event.fake > 0
    assert episode.header.agent == {"name": "human"}


def test_a_preset_of_play_brings_its_rules_and_its_prompts(moves: list[str], tmp_path: Path):
    file = tmp_path / "e.jsonl"
    flags = ("--rules", "paper", "--rule", "evidence=groups", "--log", file)
    told = inquitree("play", "paper8", *flags, stdin=script(*moves[:2], "draw_conclusion", moves[3]))
    assert told.status == 0
    assert "Results can be wrong" not in flat(told.out)
    header = read_episode(file).header
    played = Rules(**header.rules).override({"threshold": None})
    assert played == Rules.preset("paper").override({"evidence": "groups"})
    assert header.prompts == inquiry_prompts("paper").digest
    plain = ("play", "paper8", "--prompts", "paper", "--log", tmp_path / "p.jsonl")
    assert inquitree(*plain, stdin=script(*moves)).status == 0
    header = read_episode(tmp_path / "p.jsonl").header
    assert (header.prompts, header.rules["decisions"]) == (inquiry_prompts("paper").digest, "phrases")


def test_who_leaves_can_go_on_with_the_same_command(moves: list[str], tmp_path: Path):
    whole, file = tmp_path / "whole.jsonl", tmp_path / "e.jsonl"
    inquitree("play", "paper8", "--log", whole, stdin=script(*moves))
    left = inquitree("play", "paper8", "--log", file, stdin=script(*moves[:2]))
    assert left.status == 2
    assert "Left before the end. Run the same command to resume" in flat(left.out + left.err)
    assert len(read_episode(file).turns) == 2
    assert inquitree("play", "paper8", "--log", file, stdin=script(*moves[2:])).status == 0
    assert read_episode(file).fingerprint == read_episode(whole).fingerprint


def test_the_log_of_a_file_is_scored_with_the_copy_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    inquitree("new", "mine")
    typed = script("draw conclusion", "1. Nothing.", "1 A")
    assert inquitree("play", "mine.json", "--log", "logs/one.jsonl", stdin=typed).status == 0
    Path("mine.json").unlink()
    for given in ("logs", "logs/one.jsonl"):
        (score,) = inquitree("score", given, "--json").json
        assert (score["task"], score["agent"]) == ("mine", "human")
    assert inquitree("view", "logs/one.jsonl").status == 0
    (copy,) = Path("logs/tasks").iterdir()
    copy.unlink()
    for verb in ("score", "view"):
        done = inquitree(verb, "logs/one.jsonl")
        assert done.status == 2
        assert "which is not at hand; put that version of it into a folder named by INQUITREE_TREES" in done.said
    Path("logs/tasks").rmdir()
    Path("logs/tasks").write_text("")
    done = inquitree("play", copy.as_posix(), "--log", "logs/two.jsonl", stdin=typed)
    assert done.status == 2


# run, score, report


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory) -> Path:
    """A run of two agents over two trees, made by the command line."""
    folder = tmp_path_factory.mktemp("cli") / "run"
    flags = ("--agent", "oracle,worst-case", "--papers", "8,paper12", "--fake-level", "0,4", "--seeds", 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "300")
        done = inquitree("run", *flags, "--out", folder)
    assert (done.status, done.out) == (0, ""), done.err
    assert f"16 episodes played, 0 already complete: {folder}" in done.err
    return folder


@pytest.mark.parametrize(("given", "logged"), [("none", None), ("5n", "5n"), ("9", 9)])
def test_turn_limits_of_run(tmp_path: Path, given: str, logged: int | str | None):
    flags = ("--agent", "oracle", "--papers", "8", "--seeds", 1, "--max-turns", given, "--threshold", "0.4")
    assert inquitree("run", *flags, "--out", tmp_path).status == 0
    rules = read_episode(tmp_path / "episodes" / "paper8_oracle_f0_s0.jsonl").header.rules
    assert (rules["max_turns"], rules["threshold"]) == (logged, 0.4)


def test_score_as_json(run_folder: Path):
    done = inquitree("score", run_folder, "--json")
    scores = json.loads(done.out)
    assert len(scores) == 16
    by_cell = {(s["agent"], s["task"], s["fake_level"], s["seed"]): s for s in scores}
    perfect = by_cell["oracle", "paper12", 0, 1]
    assert perfect["values"]["return"] == 1
    assert (perfect["judge"], perfect["verdicts"]) == ("", [])
    assert perfect["trajectory"]["turns"] == perfect["trajectory"]["fewest_turns"] == 21
    assert perfect["trajectory"]["showings"]["first"] == {"fakes": 0, "hits": 0, "trues": 7, "false_alarms": 0}
    assert perfect["calibration"] == {"stated": 0, "brier": None, "auc": None}
    assert by_cell["worst-case", "paper8", 4, 0]["trajectory"]["unaided_coverage"] == 0


# check


def test_check_of_a_clean_tree(tmp_path: Path):
    file = tmp_path / "made.json"
    file.write_text(json.dumps(clean_document()))
    done = inquitree("check", file, "--embedder", "none")
    assert (done.status, done.out.splitlines()[0]) == (0, f"{file}: clean")


def test_notes_and_warnings_are_shown_and_leave_the_status_at_0(tmp_path: Path):
    document = clean_document()
    del document["provenance"]["tier"]
    document["subtopics"][0]["hints"][0] = "Read."
    file = tmp_path / "made.json"
    file.write_text(json.dumps(document))
    done = inquitree("check", file, "--embedder", "none")
    assert done.status == 0
    assert "1 warning, " in done.out
    assert "\n  warning T302 s1: hint 1 has 1 words, needs at least 5" in done.out
    assert "\n  note T208 provenance: has no evidence tier" in done.out
    (warning,) = [
        each
        for each in json.loads(inquitree("check", file, "--embedder", "none", "--json").out)[str(file)]
        if each["severity"] == "warning"
    ]
    assert warning | {"message": ""} == {
        "code": "T302",
        "node": "s1",
        "message": "",
        "path": "subtopics[0].hints[0]",
        "value": 1,
        "bound": 5,
        "severity": "warning",
    }


@pytest.mark.weights
@pytest.mark.parametrize("flags", [(), ("--embedder", "none")])
def test_check_of_a_faulty_tree_lists_the_faults_and_ends_with_status_1(tmp_path: Path, flags: tuple[str, ...]):
    file = tmp_path / "faulty.json"
    file.write_text(dump_tree(make_tree([[], [0], [0, 1]], [1, 1, 1], tree_id="faulty")))
    done = inquitree("check", "paper8", file, *flags)
    assert done.status == 1
    assert "paper8: " in done.out
    assert "error T201 s3: prerequisite 's1' is already implied by another one; remove it" in done.out
    faults = json.loads(inquitree("check", file, "--json", *flags).out)[str(file)]
    (edge,) = [fault for fault in faults if fault["code"] == "T201"]
    assert (edge["node"], edge["path"], edge["severity"]) == ("s3", "subtopics[2].prerequisites[0]", "error")
    assert (edge["value"], edge["bound"]) == (None, None)
    near = [fault for fault in faults if fault["code"] == "T601"]
    assert bool(near) == (not flags), "only an embedder tells siblings apart"
    assert all(fault["value"] > fault["bound"] == 0.8 for fault in near)


def test_check_of_a_file_that_is_no_tree_says_where(tmp_path: Path):
    file = tmp_path / "bad.json"
    file.write_text("{")
    done = inquitree("check", "paper8", file, "--json", "--embedder", "none")
    assert done.status == 1
    (fault,) = json.loads(done.out)[str(file)]
    assert "is not JSON at line 1" in fault["message"]
    assert (fault["code"], fault["node"], fault["path"]) == ("T101", "", "")


@pytest.mark.weights
def test_many_trees_are_checked_in_processes_with_the_same_findings(reader: ReaderEmbedder, tmp_path: Path):
    trees = [make_tree([[] for _ in range(n)], [1] * n, tree_id=f"t{n}") for n in range(1, MANY + 1)]
    files = [tmp_path / f"{tree.id}.json" for tree in trees]
    for file, tree in zip(files, trees, strict=True):
        file.write_text(dump_tree(tree))
    done = inquitree("check", *files, "--json")
    assert done.status == 1
    found = json.loads(done.out)
    for file, tree in zip(files, trees, strict=True):
        expected = [(each.code, each.path) for each in lint_tree(tree, reader.embed)]
        assert [(each["code"], each["path"]) for each in found[str(file)]] == expected
    unknown = inquitree("check", *files, "papper1", "--embedder", "none")
    assert (unknown.status, "no tree has the id 'papper1'" in unknown.said) == (2, True)


# match


@pytest.mark.weights
def test_match_shows_how_an_action_is_read():
    tree = load_tree("paper12")
    text = f"{tree.subtopics[6].text} I wonder."
    said = flat(inquitree("match", 12, text).out)
    assert re.search(r"^read as s7 \(0\.\d{3} ≥ τ = 0\.55\)", said)
    needs = tree.subtopics[6].requires
    assert (f"; entered only after {', '.join(needs)} " in said) == bool(needs)
    nearest = re.findall(r" (s\d+) 0\.\d{3} ", said)
    assert nearest[0] == "s7"
    found = json.loads(inquitree("match", 12, text, "--json").out)
    assert (found["tree"], found["state"], found["accepted"], found["decision"]) == ("paper12", "topic", True, None)
    assert found["nearest"][0]["id"] == "s7"
    assert found["nearest"][0]["similarity"] > found["nearest"][1]["similarity"]
    strict = inquitree("match", 12, "Do bees dance?", "--threshold", "0.99").out
    assert re.match(r"not accepted \(-?0\.\d{3} < τ = 0\.99\)\n", strict)


@pytest.mark.weights
def test_match_reads_designs_and_replies_to_results():
    study = load_tree("paper12").subtopics[2].studies[0]
    found = json.loads(inquitree("match", 12, study.text, "--subtopic", "s3", "--json").out)
    assert (found["state"], found["subtopic"], found["nearest"][0]["id"]) == ("subtopic", "s3", study.id)
    assert inquitree("match", 12, "draw_conclusion", "--result").out == "decision: draw_conclusion\n"
    assert inquitree("match", 12, "?!", "--result").out == "not accepted: the text holds nothing that could be read\n"


@pytest.mark.weights
def test_match_reads_every_line_of_the_standard_input():
    study = load_tree("paper12").subtopics[2].studies[0]
    typed = f"{study.text}\n\nWill it rain?\ndraw conclusion\n"
    found = inquitree("match", 12, "--subtopic", "s3", "--json", stdin=typed).json
    assert [each["text"] for each in found] == [study.text, "Will it rain?", "draw conclusion"]
    assert [each["accepted"] for each in found[:2]] == [True, False]
    assert {"text": study.text, **inquitree("match", 12, study.text, "--subtopic", "s3", "--json").json} == found[0]
    said = flat(inquitree("match", 12, "--subtopic", "s3", stdin=typed).out)
    assert "2 of 3 actions read" in said
    assert re.search(rf" {study.id} {study.id} 1\.000 ", said)
    assert re.search(r" – s3\w -?0\.\d{3} Will it rain\?", said)
    assert re.search(r" draw_conclusion .*draw conclusion", said)


# new


def test_a_new_tree_lacks_only_its_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert "written: bread.json" in inquitree("new", "bread").err
    assert Path("bread.json").read_text() == dump_tree(load_tree("bread.json"))
    done = inquitree("check", "bread.json", "--json")
    assert done.status == 1
    faults = json.loads(done.out)["bread.json"]
    assert {fault["code"] for fault in faults if fault["code"] < "T9"} == {"T301"}
    assert {"paper.title", "topic", "subtopics[1].studies[0].result.texts.0[0]"} <= {fault["path"] for fault in faults}
    written = Path("bread.json").read_text().replace("TODO", "Written")
    Path("bread.json").write_text(written)
    codes = {fault["code"] for fault in json.loads(inquitree("check", "bread.json", "--json").out)["bread.json"]}
    assert not {code for code in codes if code < "T301"}, "its structure has no fault"
    again = inquitree("new", "bread")
    assert (again.status, again.said) == (
        2,
        "error: 'bread.json' exists already; choose another id, or another folder with --out",
    )
    assert Path("bread.json").read_text() == written
    assert "written: rye.json" in inquitree("new", "bread", "--out", "rye.json").err


@pytest.mark.parametrize(
    ("subtopics", "studies"), [(1, 1), (1, 3), (3, 1), (5, 3), pytest.param(26, 26, marks=pytest.mark.e2e)]
)
def test_a_new_tree_has_the_size_asked_for_and_a_sound_structure(subtopics: int, studies: int, tmp_path: Path):
    file = tmp_path / "rye.json"
    done = inquitree("new", "rye", "--subtopics", subtopics, "--studies", studies, "--out", file)
    tree = load_tree(file)
    assert [len(subtopic.studies) for subtopic in tree.subtopics] == [studies] * subtopics
    assert [subtopic.requires for subtopic in tree.subtopics] == [(), *((f"s{i}",) for i in range(1, subtopics))]
    faults = [fault for fault in lint_tree(tree) if fault.code == "T301"]
    assert not [fault for fault in lint_tree(tree) if fault.code < "T3"], "its structure has no fault"
    listed = [int(count) for count in re.findall(r"│ (\d+) +│\n", done.out)]
    assert sum(listed) == len(faults)
    assert re.search(rf"subtopics\[…\]\.studies\[…\]\.text +│ {subtopics * studies} ", done.out)


@pytest.mark.parametrize("option", ["--subtopics", "--studies"])
@pytest.mark.parametrize("number", [0, -1, 27, 1000])
def test_a_size_that_no_new_tree_has_is_refused(option: str, number: int, tmp_path: Path):
    done = inquitree("new", "rye", option, number, "--out", tmp_path / "rye.json")
    expected = f"error: {option[2:]} must be an integer from 1 to 26, got {number}. Write further ones yourself."
    assert (done.status, done.said, [*tmp_path.iterdir()]) == (2, expected, [])


def test_a_flag_beside_a_study_file_is_refused(tmp_path: Path):
    study = tmp_path / "study.toml"
    study.write_text('agents = ["oracle"]\ntrees = ["paper8"]\nseeds = 1\n')
    beside = inquitree("run", "--study", study, "--seeds", "2", "--out", tmp_path / "run")
    assert beside.status == 2
    assert "leave out --seeds" in beside.said
    assert not (tmp_path / "run").exists()
    assert inquitree("run", "--study", study, "--out", tmp_path / "run").status == 0
