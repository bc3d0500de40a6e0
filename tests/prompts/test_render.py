"""Every sentence comes from a template; templates are sandboxed, and no text is ever taken for one."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import sys
import time
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jinja2.exceptions import SecurityError

from inquitree_gym.baselines.conversation import move_fault
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.agents.llm import opinion_fault, split_belief
from inquitree_gym.inquiry.decisions import read_decision
from inquitree_gym.inquiry.engine import Engine, Event, Reading, Rules
from inquitree_gym.inquiry.observations import ObservationRenderer
from inquitree_gym.inquiry.prompts import AGENT_TEMPLATE_NAMES, BELIEF_TEMPLATE, TEMPLATE_NAMES, inquiry_prompts
from inquitree_gym.prompts import Prompts
from inquitree_gym.prompts.render import MAX_TEMPLATE_BYTES, MAX_TEXT, Sandbox
from inquitree_gym.trees import dump_tree, parse_tree
from tests.strategies import make_tree

DECISIONS = {"redo": "redo the study", "explore": "explore new subtopic", "conclude": "draw conclusion"}
BRIEFING = {"briefing": {"wrong": 3, "exam": True}}
VALUES: dict[str, dict[str, object]] = {
    "start": {"topic": "Why salt?", "turns": 21, "bare_decisions": False, **DECISIONS} | BRIEFING,
    "topic": {"topic": "Why salt?", "turns": 21, "nothing_left": False},
    "subtopic": {"subtopic": "How much salt?", "again": False},
    "result": {
        "study": "Weigh the salt.",
        "result": "It weighed 3 g.",
        "limit": False,
        "nothing_left": False,
        "again": False,
        **DECISIONS,
    },
    "subtopic_hint": {"hint": "Think of the sea.", "level": 2, "levels": 4, "reasons": False},
    "study_hint": {"hint": "Think of scales.", "level": 2, "levels": 4, "reasons": False},
    "ask_again": {**DECISIONS},
    "conclusion": {},
    "limit": {},
    "end": {},
    "declined": {"topic": "Why salt?", "nothing_left": False},
    "redo": {"study": "Weigh the salt."},
    "wait": {},
    "recall": {"study": "Weigh the salt.", "nothing_left": False, **DECISIONS},
    "exam": {"items": ["1. A. It dissolves.\n   B. It does not."], "item": None, "count": 1, "again": True},
}
AGENT_VALUES: dict[str, dict[str, object]] = {
    "llm_system": {},
    "llm_exam": {"observation": "1. A. It weighed 3 g."},
    "llm_correction": {"fault": "it is empty"},
    "llm_dropped": {"dropped": 3},
    "recall_system": {},
    "sceptic_system": {"opening": "You lead a project."},
    "sceptic_check": {"observation": "It weighed 3 g."},
    "sceptic_note": {"observation": "It weighed 3 g.", "opinion": "VALID. As known."},
}
HOSTILE = [
    "{{ 7 * 7 }}",
    "{% for i in range(9) %}x{% endfor %}",
    "{# unseen #}",
    "{{ ''.__class__.__mro__ }}",
    "%(topic)s {topic} $topic {0.__class__}",
    "<b>& \"quoted\" 'text'</b>",
    "{% raw %}{{ topic }}{% endraw %}",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def own(folder: Path, name: str = "topic", source: str = "Mine: {{ topic }}") -> Prompts:
    (folder / f"{name}.md").write_text(source, encoding="utf-8")
    return inquiry_prompts(folder)


AGENTS = inquiry_prompts(names=AGENT_TEMPLATE_NAMES)
EVERY = {**dict.fromkeys(TEMPLATE_NAMES, inquiry_prompts()), **dict.fromkeys(AGENT_TEMPLATE_NAMES, AGENTS)}
EVERY[BELIEF_TEMPLATE] = inquiry_prompts(names=(BELIEF_TEMPLATE,))
VALUES_OF = {**VALUES, **AGENT_VALUES, BELIEF_TEMPLATE: {}}
FOLDERS = [resources.files(f"inquitree_gym.{package}") / "templates" for package in ("inquiry", "prompts")]
PAPER_TEMPLATE_NAMES = {file.name.removesuffix(".md") for file in FOLDERS[0].joinpath("paper").iterdir()}


def test_there_is_a_packaged_template_for_every_name_and_no_other():
    assert set(VALUES) == set(TEMPLATE_NAMES)
    assert set(AGENT_VALUES) == set(AGENT_TEMPLATE_NAMES)
    assert len(set(TEMPLATE_NAMES)) == len(TEMPLATE_NAMES)
    packaged = {file.name for folder in FOLDERS for file in folder.iterdir()}
    assert {f"{name}.md" for name in EVERY} <= packaged


@pytest.mark.parametrize("folder", ["", "paper"])
def test_every_packaged_template_keeps_to_the_sandbox(folder: str):
    files = Path(str(resources.files("inquitree_gym.inquiry") / "templates" / folder)).glob("*.md")
    environment = Sandbox({file.stem: file.read_text(encoding="utf-8") for file in files})
    for name in environment.list_templates():
        environment.get_template(name)


def test_an_attribute_of_each_value_is_taken_and_no_hidden_one():
    environment = Sandbox(
        {"ok": "{{ all | map(attribute='code') | join(', ') }}", "bad": "{{ all | map(attribute='__class__') | join }}"}
    )
    assert environment.fill("ok", {"all": [{"code": "F1"}, {"code": "F2"}]}) == "F1, F2"
    with pytest.raises(SecurityError):
        environment.fill("bad", {"all": ["F1"]})


@pytest.mark.parametrize("name", EVERY)
def test_a_packaged_template_shows_its_texts_and_no_mark_of_a_template(name: str):
    text = EVERY[name].render(name, **VALUES_OF[name])
    assert text == text.strip()
    assert text
    assert not any(mark in text for mark in ("{{", "{%", "{#", "None"))
    assert all(value in text for value in VALUES_OF[name].values() if isinstance(value, str))


@pytest.mark.parametrize("name", [name for name in EVERY if VALUES_OF[name]])
def test_a_value_left_out_is_named_and_never_blank(name: str):
    with pytest.raises(
        OptionError, match=rf"template '{name}\.md' of this package: '\w+' is undefined; known .*: none"
    ):
        EVERY[name].render(name)


def test_templates_of_agents_are_apart_from_those_of_environments(folder: Path):
    assert AGENTS.digest != inquiry_prompts().digest
    with pytest.raises(OptionError, match=r"no template 'topic'.*; known: llm_system, "):
        AGENTS.render("topic", topic="Why salt?")
    (folder / "llm_system.md").write_text("Say {{ 1 + 1 }}.", encoding="utf-8")
    mine = inquiry_prompts(folder, AGENT_TEMPLATE_NAMES)
    assert mine.render("llm_system") == pickle.loads(pickle.dumps(mine)).render("llm_system") == "Say 2."
    assert mine.digest != AGENTS.digest
    assert inquiry_prompts(folder).digest == inquiry_prompts().digest, "one folder may hold the templates of both"


PAPER = {name: inquiry_prompts("paper", names) for names in (TEMPLATE_NAMES, AGENT_TEMPLATE_NAMES) for name in names}


def test_the_paper_has_eleven_templates_and_one_system_prompt():
    assert len(PAPER_TEMPLATE_NAMES) == 12
    assert sorted(set(PAPER_TEMPLATE_NAMES) - set(TEMPLATE_NAMES)) == ["llm_system"]


def test_the_prompts_of_the_paper_are_frozen():
    folder = resources.files("inquitree_gym.inquiry").joinpath("templates", "paper")
    sources = sorted((file.name, file.read_text(encoding="utf-8")) for file in folder.iterdir())
    frozen = "6201a71f69d37e775d999c6cb40470181c893b8c8d8e2a7ded409f432d158f23"
    assert hashlib.sha256(repr(sources).encode()).hexdigest() == frozen, "another text needs another name"


@pytest.mark.parametrize("name", PAPER)
def test_a_template_of_the_paper_shows_the_same_texts(name: str):
    text = PAPER[name].render(name, **VALUES_OF[name])
    assert not any(mark in text for mark in ("{{", "{%", "{#", "None"))
    shown = {key: value for key, value in VALUES_OF[name].items() if name != "start" or key not in DECISIONS}
    assert all(value in text for value in shown.values() if isinstance(value, str))
    assert (text == EVERY[name].render(name, **VALUES_OF[name])) == (name not in PAPER_TEMPLATE_NAMES)


def test_prompts_are_chosen_by_name():
    assert inquiry_prompts("default").digest == inquiry_prompts(None).digest != inquiry_prompts("paper").digest
    assert inquiry_prompts("paper", ("llm_correction",)).digest == inquiry_prompts(None, ("llm_correction",)).digest
    with pytest.raises(OptionError, match="no folder of templates at 'papre'; give an existing one, 'default' or 'pa"):
        inquiry_prompts("papre")


def test_a_model_is_asked_for_the_form_that_is_read():
    assert move_fault(PAPER["llm_system"].render("llm_system")) == ""
    for name in ("llm_system", "llm_correction"):
        assert move_fault(AGENTS.render(name, **AGENT_VALUES[name])) == ""
    assert split_belief("BELIEF: fake 0.8") == ("", 0.8)
    assert "BELIEF: fake 0.8" in EVERY[BELIEF_TEMPLATE].render(BELIEF_TEMPLATE)
    assert opinion_fault(AGENTS.render("sceptic_system", opening="")) == ""
    for phrase in ("redo the study", "explore new subtopic", "draw conclusion"):
        assert read_decision(phrase)
        assert phrase in AGENTS.render("llm_system")


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_with_the_syntax_of_a_template_is_shown_as_it_is(text: str):
    for name, values in VALUES.items():
        for key in (key for key, value in values.items() if isinstance(value, str) and value):
            assert text in inquiry_prompts().render(name, **values | {key: text})


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
@example("{{ topic }}")
@example("\0\u202e\x1b[31m")
def test_any_text_is_shown_to_the_character(text: str):
    assert f"\n\n{text}\n\n" in inquiry_prompts().render("topic", topic=text, nothing_left=False)


def test_a_tree_with_the_syntax_of_a_template_plays_as_text():
    document = json.loads(dump_tree(make_tree([[]], [1])))
    text = "{{ ''.__class__ }} {% include 'end' %}"
    document["topic"] = text
    document["subtopics"][0] |= {"text": f"What of {text}?", "hints": [f"{text} {i}" for i in range(4)]}
    document["subtopics"][0]["studies"][0]["text"] = f"Try {text}."
    found = document["subtopics"][0]["studies"][0]["result"]["texts"]
    found |= {key: [f"It gave {text}, {key}."] for key in found}
    tree = parse_tree(json.dumps(document).encode())
    engine = Engine(tree, Rules(threshold=0.5))
    shown = ObservationRenderer(tree, inquiry_prompts(), engine)
    hit = Reading(0, 1.0)
    events: list[Event] = [engine.start(0)]
    for reading in (Reading(), hit, hit):
        events.append(engine.advance(events[-1].state, reading))
    assert all(text in shown.render(event) for event in events)


def test_a_template_of_the_folder_takes_the_place_of_the_packaged_one(folder: Path):
    prompts = own(folder)
    assert prompts.render("topic", topic="Why salt?", turns=3) == "Mine: Why salt?"
    assert prompts.render("end") == inquiry_prompts().render("end")
    assert prompts.folder == folder


def test_a_folder_that_is_not_there_is_refused_by_name(folder: Path):
    (folder / "file").write_text("")
    for path in (folder / "nosuch", folder / "file", "~nosuchuser/x", "x" * 5_000):
        with pytest.raises(
            OptionError, match=r"no folder of templates at '.*'; give an existing one, 'default' or 'paper'"
        ):
            inquiry_prompts(path)


def test_a_template_of_an_unknown_name_is_refused_with_a_suggestion(folder: Path):
    with pytest.raises(
        OptionError, match=r"sub_topic\.md' is not a known template \(did you mean 'subtopic'\?\); known: start"
    ):
        own(folder, "sub_topic")


def test_a_template_may_be_as_large_as_the_limit_and_no_larger(folder: Path):
    assert len(own(folder, "end", "x" * MAX_TEMPLATE_BYTES).render("end")) == MAX_TEMPLATE_BYTES
    with pytest.raises(OptionError, match=r"end\.md' is larger than 100,000 bytes"):
        own(folder, "end", "x" * (MAX_TEMPLATE_BYTES + 1))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("Fine.\n{{ topic", "line 2: unexpected end of template"),
        ("{% if %}{% endif %}", "line 1: Expected an expression"),
        ("{% if topic %}", "line 1: Unexpected end of template"),
        ("\n\n{{ topic|shout }}", "line 3: No filter named 'shout'"),
        ("{{ [1, 2]|random }}", "line 1: No filter named 'random'"),
        ("{% launch %}", "line 1: Encountered unknown tag 'launch'"),
    ],
)
def test_broken_syntax_is_told_when_the_folder_is_read_not_when_the_text_is_due(
    folder: Path, source: str, message: str
):
    with pytest.raises(OptionError) as caught:
        own(folder, "end", source)
    assert f"template 'end.md' in '{folder}', {message}" in str(caught.value)


def test_a_template_that_is_no_text_is_refused_by_name(folder: Path):
    (folder / "end.md").write_bytes("Café".encode("latin-1"))
    (folder / "topic.md").mkdir()
    with pytest.raises(OptionError, match=r"(?s)end\.md' cannot be read as UTF-8.*topic\.md' cannot be read"):
        inquiry_prompts(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="needs links and pipes")
@pytest.mark.parametrize("kind", ["outside", "loop", "device", "pipe"])
def test_a_template_is_a_file_of_its_folder(folder: Path, kind: str):
    file = folder / "end.md"
    if kind == "pipe":
        os.mkfifo(file)
    else:
        (folder.parent / "secret.txt").write_text("secret")
        file.symlink_to({"outside": folder.parent / "secret.txt", "loop": file, "device": "/dev/zero"}[kind])
    with pytest.raises(OptionError, match=r"end\.md' cannot be read: it is no file of this folder") as caught:
        inquiry_prompts(folder)
    assert "secret\n" not in str(caught.value)


def test_every_bad_template_is_told_at_once(folder: Path):
    for name in ("one", "two"):
        (folder / f"{name}.md").write_text("x")
    (folder / "end.md").write_text("x" * (MAX_TEMPLATE_BYTES + 1))
    with pytest.raises(OptionError) as caught:
        inquiry_prompts(folder)
    assert all(f"{name}.md" in str(caught.value) for name in ("one", "two", "end"))
    for name in ("one", "two"):
        (folder / f"{name}.md").unlink()
    for name in ("end", "limit"):
        (folder / f"{name}.md").write_text("{{")
    with pytest.raises(OptionError, match=r"(?s)'end\.md'.*'limit\.md'"):
        inquiry_prompts(folder)


def test_an_unknown_template_is_refused_with_a_suggestion():
    with pytest.raises(OptionError, match=r"no template 'resutl' \(did you mean 'result'\?\); known: start, "):
        inquiry_prompts().render("resutl")


@pytest.mark.parametrize(
    "source",
    [
        "{{ nosuch }}",
        "{{ topic.nosuch }}",
        "{{ 1 / 0 }}",
        "{{ topic + 1 }}",
        "{{ '%d' % topic }}",
        "{{ 9 / ([9] | first - 9) }}",
    ],
)
def test_a_template_that_fails_names_itself_and_the_values_it_may_use(folder: Path, source: str):
    prompts = own(folder, "topic", source)
    with pytest.raises(OptionError, match=rf"template 'topic\.md' in '{folder}': .*; known values: topic, turns$"):
        prompts.render("topic", topic="Why?", turns=3)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{{ ''.__class__.__mro__ }}", ""),
        ("{{ ''['__class__'] }}", ""),
        ("{{ ''|attr('__class__') }}", ""),
        ("{{ topic.__class__.__base__.__subclasses__() }}", ""),
        ("{{ lipsum.__globals__ }}", ""),
        ("{{ cycler.__init__.__globals__.os.popen('id').read() }}", ""),
        ("{{ self._TemplateReference__context }}", ""),
        ("{{ '{0.__class__}'.format(topic) }}", ""),
        ("{{ '{x.__class__}'.format_map({'x': topic}) }}", ""),
        ("{{ (lambda: 1)() }}", ""),
        ("{{ [1].append(2) }}", ""),
        ("{% set x = {} %}{{ x.update(a=1) }}", ""),
        ("{% include '/etc/passwd' %}", ""),
        ("{% include '../render.py' %}", ""),
        ("{% import 'os' as os %}", ""),
        ("{% extends 'nosuch' %}", ""),
        ("{% for i in range(1000000) %}{% endfor %}", ""),
        ("{{ namespace.__init__ }}", ""),
        ("{{ open('/etc/passwd').read() }}", ""),
        ("{{ __import__('os') }}", ""),
        ("{{ 'x' * 10 }}", "take numbers alone"),
        ("{{ [1] * 10 }}", "take numbers alone"),
        ("{{ 2 ** 3 }}", r"no '\*\*'"),
        ("{{ '%9d' % 1 }}", "take numbers alone"),
        ("{{ 'x'|center(9) }}", "No filter named 'center'"),
        ("{{ '%9d'|format(1) }}", "No filter named 'format'"),
        ("{{ topic.ljust(9) }}", "line 1: 'call' is not part"),
        ("{{ '{:9}'.format(1) }}", "'call' is not part"),
        ("{{ (5).to_bytes(9) }}", "'call' is not part"),
        ("{{ range(9) }}", "'call' is not part"),
        ("{% macro m() %}x{% endmacro %}", "line 1: 'macro' is not part"),
        ("{% set x = [topic, topic] %}", "'assign' is not part"),
        ("{% set x %}x{% endset %}", "'assignblock' is not part"),
        ("{% with x = [topic, topic] %}{{ x }}{% endwith %}", "'with' is not part"),
        ("{% block b %}x{% endblock %}", "'block' is not part"),
        ("{% filter upper %}x{% endfilter %}", "'filterblock' is not part"),
        ("{% for i in [[1]] recursive %}{{ loop(i) }}{% endfor %}", "'call' is not part"),
        ("{% include 'end' %}", "'include' is not part"),
        ("{{ " + "9" * 5000 + " }}", "cannot be compiled"),
        ("{{ " + "(" * 5000 + ")" * 5000 + " }}", "cannot be compiled"),
    ],
)
def test_no_template_leaves_the_sandbox_or_makes_a_text_grow(folder: Path, source: str, reason: str):
    with pytest.raises(OptionError, match=rf"(?s)template 'topic\.md' in .*{reason}"):
        own(folder, "topic", source).render("topic", topic="Why?", turns=3)


NESTED = "{% for a in topic %}{% for b in topic %}{% for c in topic %}{% endfor %}{% endfor %}{% endfor %}"


@pytest.mark.parametrize("source", [NESTED, "{% for i in topic %}{{ topic }}{% endfor %}", "{{ topic|join(topic) }}"])
def test_a_text_has_a_greatest_cost(folder: Path, source: str):
    prompts = own(folder, "topic", source)
    assert len(prompts.render("topic", topic="x" * 10)) <= 1000
    began = time.perf_counter()
    with pytest.raises(OptionError, match=r"template 'topic\.md' in .*longer than 1,000,000 characters"):
        prompts.render("topic", topic="x" * (MAX_TEXT // 5))
    assert time.perf_counter() - began < 5


def test_loops_choices_and_filters_are_at_hand(folder: Path):
    source = (
        "{% for i in words if i %}{{ loop.index * 2 }}{{ i|upper }}{{ turns % 2 }}"
        "{{ ', ' if not loop.last }}{% endfor %}{% for d in ['a', 'b'] %}{{ d ~ '.' }}{% endfor %}"
        "{{ words[:1]|join(' ')|lower|trim }}!"
    )
    assert own(folder, "topic", source).render("topic", words=["Why", "salt"], turns=3) == "2WHY1, 4SALT1a.b.why!"


def test_the_digest_follows_the_words_and_not_the_folder(folder: Path):
    plain = inquiry_prompts().digest
    assert len(plain) == 64
    mine = own(folder).digest
    assert mine != plain
    assert own(folder, "topic", "Mine: {{ topic }}!").digest not in (mine, plain)
    assert own(folder, "topic", "Mine: {{ topic }}").digest == mine
    own(folder, "end", "A")
    one_way = own(folder, "limit", "B").digest
    own(folder, "end", "B")
    assert own(folder, "limit", "A").digest != one_way, "the same words under other names are other templates"


def test_templates_survive_pickling_even_where_their_folder_does_not(folder: Path):
    prompts = own(folder)
    assert prompts.render("topic", topic="x") == "Mine: x", "the compiled templates are not pickled"
    packed = pickle.dumps(prompts)
    (folder / "topic.md").unlink()
    folder.rmdir()
    again = pickle.loads(packed)
    assert again.render("topic", topic="x") == "Mine: x"
    assert (again.digest, again.folder) == (prompts.digest, folder)
