"""The page on which a person plays: the log of `play`, nothing that an agent may not see, and the page in a browser."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.baselines import HumanAgent
from inquitree_gym.inquiry.pages import belief_table
from inquitree_gym.integrations.play_page import PlayServer
from inquitree_gym.integrations.session import EpisodeSession, play_task, task_environment
from inquitree_gym.integrations.tasks import EpisodeTask, OwnTask, make_tasks
from inquitree_gym.log import Episode, read_episode
from inquitree_gym.loopback import MAX_BODY
from inquitree_gym.rollout import play
from inquitree_gym.sheets import lettered, lettered_items
from inquitree_gym.text_limits import MAX_ACTION_LENGTH
from tests.contract.command_line import Done, inquitree
from tests.results.browser import CHROMIUM, DESKTOP, PHONE, Tab, open_browser
from tests.servers import ask_page

TASKS = {
    "inquiry": {"papers": "paper12", "fake_level": 3, "max_turns": "2n"},
    "projection": {"papers": "paper12", "levels": "null"},
    "exploration": {"papers": "t1-s1-01", "tools": "all"},
    "toy": {"papers": "bread", "shown": 2},
}
AGENTS = {"projection": "coin"}
Start = Callable[..., PlayServer]


def task_of(kind: str, seed: int = 5) -> EpisodeTask:
    return make_tasks(env=kind, seeds=[seed], **TASKS[kind])[0]


def typed(task: EpisodeTask) -> list[str]:
    """The actions of an agent without a model on a task."""
    return list(play_task(task, AGENTS.get(task.kind, "oracle")).actions)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts servers that end with the test."""
    started: list[tuple[PlayServer, threading.Thread]] = []

    def make(task: EpisodeTask, file: Path = tmp_path / "episode.jsonl") -> PlayServer:
        server = PlayServer(lambda: EpisodeSession(task, file=file, agent={"name": "human"}), f"Play {task.task}")
        thread = threading.Thread(target=partial(server.serve_forever, 0.01))
        thread.start()
        started.append((server, thread))
        return server

    yield make
    for server, thread in started:
        server.shutdown()
        thread.join()
        server.close()
        server.server_close()


def ask(server: PlayServer, path: str, order: Any = None, **headers: str) -> tuple[int, str]:
    status, content = ask_page(server, path, order, **headers)
    return status, content.decode()


def state_of(server: PlayServer) -> dict[str, Any]:
    status, content = ask(server, f"/{server.token}/state")
    assert status == 200, content
    return dict(json.loads(content))


def act(server: PlayServer, order: Any) -> tuple[int, dict[str, Any]]:
    status, content = ask(server, f"/{server.token}/act", order)
    return status, json.loads(content)


def move(server: PlayServer, turn: int, text: Any) -> dict[str, Any]:
    status, told = act(server, {"do": "move", "turn": turn, "text": text})
    assert status == 200, told
    return told


@pytest.mark.parametrize("kind", TASKS)
def test_an_episode_on_the_page_leaves_the_log_of_play(kind: str, start: Start, tmp_path: Path):
    task = task_of(kind)
    actions = typed(task)
    server = start(task)
    told = state_of(server)
    for turn, action in enumerate(actions):
        assert (told["turn"], told["over"], told["score"]) == (turn, False, None)
        told = move(server, turn, action)
    following = iter(actions)
    expected = play(
        task_environment(task), HumanAgent(lambda observation, info: next(following)), task.seed, options=task.options
    )
    logged = read_episode(tmp_path / "episode.jsonl")
    assert (logged.fingerprint, logged.status) == (expected.fingerprint, "concluded")
    assert logged.header.agent == expected.header.agent
    assert (told["over"], told["score"]["reward"]) == (True, expected.footer.episode_return)
    status, view = ask(server, f"/{server.token}/view")
    assert (status, f"turn-{len(actions)}" in view) == (200, True)
    scored = inquitree("score", tmp_path / "episode.jsonl", "--json")
    assert scored.status == 0, scored.err


def test_before_the_end_the_page_tells_what_an_agent_sees_and_no_more(start: Start):
    task = task_of("inquiry")
    tree, actions, server = task.load(), typed(task), start(task)
    status, page = ask(server, f"/{server.token}/")
    assert status == 200
    texts = {name: text for name, text in tree.texts().items() if len(text) > 20 and name != "topic"}
    hidden = [axis.question for axis in tree.axes] + [pole for axis in tree.axes for pole in axis.poles]
    told: dict[str, Any] = state_of(server)
    for turn, action in enumerate(actions):
        read = "\n".join(part for pair in told["turns"] for part in pair) + told["observation"]
        for text in (page, json.dumps(told, ensure_ascii=False)):
            known = json.dumps(read, ensure_ascii=False)
            assert [name for name, each in texts.items() if json.dumps(each)[1:-1] in text and each not in read] == []
            assert [each for each in hidden if f'"{each}"' in text and each not in known] == []
        keys = r'"(event|similarity|margin|fake|hint_level|node|threshold|world)"|\(fake\)'
        assert not re.search(keys, json.dumps(told))
        assert told["beliefs"] is None
        assert ask(server, f"/{server.token}/view")[0] == 400
        told = move(server, turn, action)
    assert told["over"]
    assert any("(fake)" in json.dumps(part) for part in told["found"]["parts"])


def test_the_tree_unfolds_as_it_is_found_and_is_whole_at_the_end(start: Start):
    task = task_of("inquiry")
    tree, actions, server = task.load(), typed(task), start(task)
    first = state_of(server)["found"]
    assert (first["heading"], first["text"], first["parts"]) == ("Topic", tree.topic, [])
    told = move(server, 0, actions[0])
    assert [part["text"] for part in told["found"]["parts"]] == [actions[0]]
    assert told["found"]["parts"][0]["parts"] == []
    told = move(server, 1, actions[1])
    (study,) = told["found"]["parts"][0]["parts"]
    assert (study["text"], study["parts"][0]["heading"]) == (actions[1], "Result 1")
    assert study["parts"][0]["text"] in told["observation"]
    for turn, action in enumerate(actions[2:], 2):
        told = move(server, turn, action)
    assert {part["text"] for part in told["found"]["parts"]} == {subtopic.text for subtopic in tree.subtopics}
    listed = {each["text"] for part in told["found"]["parts"] for each in part["parts"]}
    assert listed <= {study.text for study in tree.studies}


def test_the_beliefs_are_those_of_the_observer_and_stand_beside_the_answers_at_the_end(start: Start):
    task = task_of("inquiry")
    tree, actions, server = task.load(), typed(task), start(task)
    for turn, action in enumerate(actions[:2]):
        move(server, turn, action)
    looked = act(server, {"do": "look"})[1]["beliefs"]
    read = {axis for study in tree.studies if study.text == actions[1] for axis in study.result.axes}
    assert {line[0] for line in looked["lines"]} == {axis.question for axis in tree.axes if axis.id in read}
    assert looked["heads"] == ["question", "possible answer", "belief"]
    assert state_of(server)["beliefs"] is None
    told: dict[str, Any] = {}
    for turn, action in enumerate(actions[2:], 2):
        told = move(server, turn, action)
    lines = told["beliefs"]["lines"]
    assert len(lines) == sum(len(axis.poles) for axis in tree.axes)
    assert sum(bool(line[4]) for line in lines) == len(tree.axes)
    assert any(line[3] for line in lines)
    for axis in tree.axes:
        assert sum(float(line[2]) for line in lines if line[0] == axis.question) == pytest.approx(1, abs=0.01)


def test_without_an_even_draw_of_worlds_there_is_no_observer(start: Start):
    task = make_tasks("paper12", seeds=[1], world="actual")[0]
    server = start(task)
    assert act(server, {"do": "look"})[1]["beliefs"] is None
    assert belief_table(EpisodeSessionLog(task).episode, task.load()) is None


class EpisodeSessionLog:
    """The log of an episode that has just begun."""

    def __init__(self, task: EpisodeTask) -> None:
        session = EpisodeSession(task)
        session.begin()
        self.episode: Episode[Any] = session.episode


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "yours is empty"),
        (" \n\t", "yours is empty"),
        ("x" * (MAX_ACTION_LENGTH + 1), f"at most {MAX_ACTION_LENGTH:,} characters"),
        (7, "must be a text"),
        (None, "must be a text"),
    ],
)
def test_a_bad_move_is_told_and_takes_no_turn(text: Any, why: str, start: Start):
    server = start(task_of("toy"))
    status, told = act(server, {"do": "move", "turn": 0, "text": text})
    assert (status, why in told["error"]) == (400, True)
    assert state_of(server)["turn"] == 0


def test_a_move_of_the_largest_length_and_any_letters_is_played_and_logged(start: Start):
    server = start(task_of("toy"))
    text = "𝔘" * MAX_ACTION_LENGTH
    told = act(server, json.dumps({"do": "move", "turn": 0, "text": text}, ensure_ascii=False).encode())[1]
    assert told["turns"][0][1] == text


@pytest.mark.parametrize(
    "order", [b"{", [], {"do": "dance"}, {"do": "move", "turn": "0", "text": "flour"}, {"do": "move"}]
)
def test_an_order_that_does_not_fit_is_told(order: Any, start: Start):
    server = start(task_of("toy"))
    status, told = act(server, order)
    assert (status, bool(told["error"])) == (400, True)


@pytest.mark.parametrize(
    ("path", "headers", "why"),
    [
        ("/wrong/act", {}, "the token is wrong"),
        ("/TOKEN/act", {"Origin": "http://example.org"}, "orders come from the page itself"),
        ("/TOKEN/act", {"Content-Type": "text/plain"}, "orders come from the page itself"),
        ("/TOKEN/act", {"Host": "example.org"}, "this is not the address of the page"),
        ("/TOKEN/act", {"Content-Length": str(MAX_BODY + 1)}, "at most"),
    ],
)
def test_moves_from_elsewhere_are_refused(path: str, headers: dict[str, str], why: str, start: Start):
    server = start(task_of("toy"))
    order = {"do": "move", "turn": 0, "text": "flour"}
    status, content = ask(server, path.replace("TOKEN", server.token), order, **headers)
    assert (status in (403, 413), why in json.loads(content)["error"]) == (True, True)
    for address in ("/", "/wrong/", "/wrong/state", "/wrong/view"):
        assert ask(server, address)[0] == 403
    assert state_of(server)["turn"] == 0


def test_a_second_page_cannot_play_on_what_it_has_not_seen_and_nothing_follows_the_end(start: Start):
    task = task_of("toy")
    actions, server = typed(task), start(task)
    for turn, action in enumerate(actions):
        move(server, turn, action)
        status, told = act(server, {"do": "move", "turn": turn, "text": action})
        assert status == 400
    assert "the episode is over" in told["error"]
    assert state_of(server)["turn"] == len(actions)
    other = start(task, server.log.with_name("other.jsonl"))
    move(other, 0, "flour")
    assert "another page has played on" in act(other, {"do": "move", "turn": 0, "text": "flour"})[1]["error"]


def test_a_torn_episode_is_resumed_and_a_whole_one_is_refused(start: Start, tmp_path: Path):
    task = task_of("toy")
    actions, first = typed(task), start(task)
    move(first, 0, actions[0])
    first.close()
    second = start(task)
    told = state_of(second)
    assert [pair[1] for pair in told["turns"]] == actions[:1]
    for turn, action in enumerate(actions[1:], 1):
        move(second, turn, action)
    third = start(task)
    status, content = ask(third, f"/{third.token}/state")
    assert (status, "holds a complete episode" in content) == (400, True)


def test_items_are_read_as_they_are_lettered():
    items = [["It rises.", "It falls.", "A. B. said nothing."], ["Yes: 2. A. no", "No"]]
    text = "Sheet.\n\n" + "\n\n".join(lettered(each, number) for number, each in enumerate(items, 1)) + "\n\nAnswer."
    assert lettered_items(text) == [("1", items[0]), ("2", items[1])]
    assert lettered_items(lettered(items[1])) == [("", items[1])]
    assert lettered_items("1. At the topic, propose.\nA. Smith wrote it.\nC. No") == []


# On the command line


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--play", "12", "--fake-level", "0,3"), "one value each of fake_level"),
        (("--play", "12", "--agent", "oracle"), "leave out --agent"),
        (("--play", "12", "some-run"), "leave out --paths"),
        (("--play", "12", "--world", "nowhere"), "world"),
        (("--play", "12", "--env", "projection", "--world", "actual"), "--rule is a flag of --env inquiry"),
        (("--play", "nothing"), "nothing"),
        (("run", "--max-turns", "9"), "--max-turns goes with --play"),
        (("run", "--log", "x.jsonl"), "--log goes with --play"),
        ((), "or --play a task"),
    ],
)
def test_flags_that_do_not_fit_are_told(flags: tuple[str, ...], why: str):
    done = inquitree("view", *flags)
    assert (done.status, why in done.said) == (2, True), done.err


def test_the_command_plays_with_its_flags_until_it_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    opened: list[PlayServer] = []
    monkeypatch.setattr(PlayServer, "service_actions", lambda server: opened.append(server))
    file = tmp_path / "mine.jsonl"
    flags = ("--fake-level", 4, "--seed", 7, "--world", "train", "--max-turns", 6, "--log", file)
    ended: list[Done] = []
    thread = threading.Thread(target=lambda: ended.append(inquitree("view", "--play", "paper12", *flags)))
    thread.start()
    while not opened and not ended:
        thread.join(0.01)
    assert not ended, ended[0].err
    server = opened[0]
    told = state_of(server)
    assert told["left"] == 6
    move(server, 0, task_of("inquiry").load().subtopics[0].text)
    assert act(server, {"do": "finish"}) == (200, {})
    thread.join(60)
    assert not thread.is_alive()
    header = read_episode(file).header
    assert [header.rules[name] for name in ("fake_level", "max_turns", "world")] == [4, 6, "train"]
    assert (header.seed, header.agent["name"]) == (7, "human")


def test_a_task_of_ones_own_is_played_from_its_file(start: Start):
    shipped = task_of("inquiry")
    own = OwnTask(shipped.kind, "paper12", 1, 3, shipped.cell, {}, shipped.load())
    assert state_of(start(own))["task"] == "paper12"


# In the browser


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    if CHROMIUM is None:
        pytest.skip("no browser is installed")
    with open_browser() as opened:
        yield opened


SETTLED = "new Promise(done => { const look = () => state && !busy ? done(true) : setTimeout(look, 5); look(); })"


def shown(tab: Tab, script: str) -> Any:
    """Return a value of the page when no order is under way."""
    assert tab.run(SETTLED)
    return tab.run(script)


def press(tab: Tab, key: str, **more: Any) -> None:
    for kind in ("keyDown" if "text" in more else "rawKeyDown", "keyUp"):
        tab.send("Input.dispatchKeyEvent", type=kind, key=key, **more)


@pytest.mark.e2e
def test_an_episode_is_played_with_keys_alone_up_to_the_exam(tab: Tab, start: Start, tmp_path: Path):
    task = task_of("inquiry")
    actions, server = typed(task), start(task)
    tab.events.clear()
    tab.open(server.address)
    assert "You lead a research project" in shown(tab, "by('story').textContent")
    for _ in range(30):
        if tab.run("document.activeElement.id") == "text":
            break
        press(tab, "Tab", code="Tab", windowsVirtualKeyCode=9)
    assert tab.run("document.activeElement.matches(':focus-visible')")
    for action in actions[:-1]:
        tab.send("Input.insertText", text=action)
        press(tab, "Enter", code="Enter", windowsVirtualKeyCode=13, modifiers=2)
        assert shown(tab, "by('said').textContent") == ""
        assert tab.run("document.activeElement.id") == "text"
    items = len(task.load().conclusions)
    assert shown(tab, "document.querySelectorAll('fieldset').length") == items
    chosen = dict(line.split() for line in actions[-1].splitlines())
    for number, letter in chosen.items():
        tab.run(f"document.querySelector('input[name=item{int(number) - 1}][value={letter}]').focus()")
        press(tab, " ", code="Space", windowsVirtualKeyCode=32, text=" ")
    assert tab.run("by('text').value") == actions[-1].strip()
    tab.run("by('send').focus()")
    press(tab, "Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
    assert shown(tab, "document.activeElement.id") == "end-title"
    assert tab.run("by('beliefs').querySelectorAll('tbody tr').length") > 0
    assert read_episode(tmp_path / "episode.jsonl").actions == tuple(actions)
    assert [each for each in tab.faults if server.address not in json.dumps(each)] == []


@pytest.mark.e2e
def test_the_switch_shows_and_hides_beliefs_and_faults_are_announced(tab: Tab, start: Start):
    task = task_of("inquiry")
    actions, server = typed(task), start(task)
    tab.open(server.address)
    for action in actions[:2]:
        shown(tab, f"by('text').value = {json.dumps(action)}, by('send').click()")
    shown(tab, "by('look').click()")
    assert shown(tab, "[by('look').getAttribute('aria-pressed'), by('beliefs').hidden]") == ["true", False]
    tab.run("by('look').click()")
    assert shown(tab, "[by('look').getAttribute('aria-pressed'), by('beliefs').hidden]") == ["false", True]
    tab.run("by('text').value = ' ', by('send').click()")
    assert shown(tab, "by('said').textContent") == "A move has at least one word. Yours is empty."
    move(server, 2, actions[2])  # by another tab
    tab.run("by('text').value = '<b>mine</b>', by('send').click()")
    assert "another page has played on" in shown(tab, "by('said').textContent")
    assert tab.run("by('text').value") == "<b>mine</b>"
    assert tab.run("state.turn") == 3
    tab.run("by('send').click()")
    assert "<b>mine</b>" in shown(tab, "by('story').textContent")
    assert tab.run("by('story').querySelector('b')") is None


@pytest.mark.e2e
@pytest.mark.parametrize(("kind", "hidden"), [("inquiry", False), ("toy", True)])
def test_the_observer_has_a_place_where_the_kind_has_one(tab: Tab, start: Start, kind: str, hidden: bool):
    tab.open(start(task_of(kind)).address)
    assert shown(tab, "by('observer-part').hidden") == hidden


@pytest.mark.e2e
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", [PHONE, DESKTOP])
def test_the_page_fits_its_screen_in_both_schemes(tab: Tab, start: Start, size: tuple[int, int], dark: bool):
    server = start(task_of("inquiry"))
    for turn, action in enumerate(typed(task_of("inquiry"))):
        move(server, turn, action)
    tab.open(server.address, size, dark)
    assert shown(tab, "document.documentElement.scrollWidth <= innerWidth")
    assert tab.run("getComputedStyle(document.body).backgroundColor") == (
        "rgb(20, 23, 28)" if dark else "rgb(255, 255, 255)"
    )
    small = (
        "[...document.querySelectorAll('button')].filter(each => each.offsetParent && each.offsetHeight < 44).length"
    )
    assert tab.run(small) == 0
