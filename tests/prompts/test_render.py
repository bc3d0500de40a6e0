"""Every sentence comes from a template; templates are sandboxed, and no text is ever taken for one."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jinja2.exceptions import SecurityError

from inquitree_gym.baselines.conversation import move_fault, opinion_fault, split_belief
from inquitree_gym.decisions import read_decision
from inquitree_gym.engine import Engine, Event, Reading, Rules
from inquitree_gym.envs.observations import ObservationRenderer
from inquitree_gym.errors import OptionError
from inquitree_gym.prompts import AGENT_TEMPLATE_NAMES, BELIEF_TEMPLATE, TEMPLATE_NAMES, Prompts
from inquitree_gym.prompts.render import MAX_TEMPLATE_BYTES, PAPER_TEMPLATE_NAMES
from inquitree_gym.prompts.sandbox import MAX_LITERAL, MAX_TEXT, Sandbox
from inquitree_gym.trees import dump_tree, parse_tree
from tests.strategies import make_tree

DECISIONS = {"redo": "redo the study", "explore": "explore new subtopic", "conclude": "draw conclusion"}
VALUES: dict[str, dict[str, object]] = {
    "start": {"topic": "Why salt?", "turns": 21, "bare_decisions": False, **DECISIONS},
    "topic": {"topic": "Why salt?", "turns": 21, "nothing_left": False},
    "subtopic": {"subtopic": "How much salt?"},
    "study": {"study": "Weigh the salt."},
    "result": {
        "study": "Weigh the salt.",
        "result": "It weighed 3 g.",
        "limit": False,
        "nothing_left": False,
        **DECISIONS,
    },
    "subtopic_hint": {"hint": "Think of the sea.", "level": 2, "levels": 4, "reason": ""},
    "study_hint": {"hint": "Think of scales.", "level": 2, "levels": 4, "reason": ""},
    "ask_again": {**DECISIONS},
    "conclusion": {},
    "limit": {},
    "end": {},
    "declined": {"topic": "Why salt?", "nothing_left": False},
    "subtopic_tie": {"first": "Think of the sea.", "second": "Think of mines."},
    "study_tie": {"first": "Think of scales.", "second": "Think of taste."},
    "redo": {"study": "Weigh the salt."},
}
AGENT_VALUES: dict[str, dict[str, object]] = {
    "llm_system": {},
    "llm_correction": {"fault": "it is empty"},
    "llm_dropped": {"dropped": 3},
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
    return Prompts(folder)


AGENTS = Prompts(names=AGENT_TEMPLATE_NAMES)
EVERY = {**dict.fromkeys(TEMPLATE_NAMES, Prompts()), **dict.fromkeys(AGENT_TEMPLATE_NAMES, AGENTS)}
EVERY[BELIEF_TEMPLATE] = Prompts(names=(BELIEF_TEMPLATE,))
VALUES_OF = {**VALUES, **AGENT_VALUES, BELIEF_TEMPLATE: {}}


def test_there_is_a_packaged_template_for_every_name_and_no_other():
    assert set(VALUES) == set(TEMPLATE_NAMES)
    assert set(AGENT_VALUES) == set(AGENT_TEMPLATE_NAMES)
    assert len(set(TEMPLATE_NAMES)) == len(TEMPLATE_NAMES)
    packaged = {file.name for file in resources.files("inquitree_gym.prompts").joinpath("templates").iterdir()}
    assert {f"{name}.md" for name in EVERY} <= packaged


@pytest.mark.parametrize("folder", ["", "paper"])
def test_every_packaged_template_keeps_to_the_sandbox(folder: str):
    files = Path(str(resources.files("inquitree_gym.prompts") / "templates" / folder)).glob("*.md")
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
    assert AGENTS.digest != Prompts().digest
    with pytest.raises(OptionError, match=r"no template 'topic'.*; known: llm_system, "):
        AGENTS.render("topic", topic="Why salt?")
    (folder / "llm_system.md").write_text("Say {{ 1 + 1 }}.", encoding="utf-8")
    mine = Prompts(folder, AGENT_TEMPLATE_NAMES)
    assert mine.render("llm_system") == pickle.loads(pickle.dumps(mine)).render("llm_system") == "Say 2."
    assert mine.digest != AGENTS.digest
    assert Prompts(folder).digest == Prompts().digest, "one folder may hold the templates of both"
    with pytest.raises(OptionError, match=r"llm_system\.md' is not a known template.*; known: judge_system"):
        Prompts(folder, ("judge_system",))


PAPER = {name: Prompts("paper", names) for names in (TEMPLATE_NAMES, AGENT_TEMPLATE_NAMES) for name in names}
PAPER_ALONE = [name for name in PAPER if name in PAPER_TEMPLATE_NAMES]


def test_the_paper_has_eleven_templates_and_one_system_prompt():
    assert len(PAPER_TEMPLATE_NAMES) == 12
    assert sorted(set(PAPER_TEMPLATE_NAMES) - set(TEMPLATE_NAMES)) == ["llm_system"]
    folder = resources.files("inquitree_gym.prompts").joinpath("templates", "paper")
    assert {file.name for file in folder.iterdir()} == {f"{name}.md" for name in PAPER_TEMPLATE_NAMES}


def test_the_prompts_of_the_paper_are_frozen():
    folder = resources.files("inquitree_gym.prompts").joinpath("templates", "paper")
    sources = sorted((file.name, file.read_text(encoding="utf-8")) for file in folder.iterdir())
    frozen = "fa8ee161e2f23261ecc4d595a4c611688acc3e64537739613ce0530167027ef3"
    assert hashlib.sha256(repr(sources).encode()).hexdigest() == frozen, "another text needs another name"


@pytest.mark.parametrize("name", PAPER)
def test_a_template_of_the_paper_shows_the_same_texts(name: str):
    text = PAPER[name].render(name, **VALUES_OF[name])
    assert not any(mark in text for mark in ("{{", "{%", "{#", "None"))
    shown = {key: value for key, value in VALUES_OF[name].items() if name != "start" or key not in DECISIONS}
    assert all(value in text for value in shown.values() if isinstance(value, str))
    assert (text == EVERY[name].render(name, **VALUES_OF[name])) == (name not in PAPER_TEMPLATE_NAMES)


@pytest.mark.parametrize("name", PAPER_ALONE)
def test_no_template_of_the_paper_warns_of_wrong_results_or_counts_turns_and_hints(name: str):
    for level, limit in ((2, False), (4, True)):
        values = VALUES_OF[name] | {"turns": 4321, "level": level, "levels": 4, "limit": limit, "nothing_left": True}
        text = PAPER[name].render(name, **values).lower()
        assert not re.search(r"\b(wrong|fake|false|trust|doubt|turns?|budget|4321|\d of \d|visited)\b", text), text


def test_the_paper_asks_for_at_most_five_sentences_wherever_a_proposal_is_written():
    proposing = ("start", "topic", "subtopic", "subtopic_hint", "study_hint", "llm_system")
    assert all("at most five sentences" in PAPER[name].render(name, **VALUES_OF[name]) for name in proposing)


def test_prompts_are_chosen_by_name():
    assert Prompts("default").digest == Prompts(None).digest != Prompts("paper").digest
    assert Prompts("paper", ("llm_correction",)).digest == Prompts(None, ("llm_correction",)).digest
    with pytest.raises(OptionError, match="no folder of templates at 'papre'; give an existing one, 'default' or 'pa"):
        Prompts("papre")


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


@pytest.mark.parametrize(("dropped", "said"), [(1, "1 earlier exchange left"), (2, "2 earlier exchanges left")])
def test_what_is_left_out_is_counted(dropped: int, said: str):
    assert said in EVERY["llm_dropped"].render("llm_dropped", dropped=dropped)


def test_the_number_of_turns_is_named_where_there_is_a_limit():
    limited = Prompts().render("start", topic="Why?", turns=21, bare_decisions=True, **DECISIONS)
    free = Prompts().render("start", topic="Why?", turns=None, bare_decisions=True, **DECISIONS)
    assert "21 turns" in limited
    assert "turns before" not in free
    assert "21" not in free


def test_the_last_hint_asks_to_repeat_it():
    for name in ("subtopic_hint", "study_hint"):
        third = Prompts().render(name, hint="Weigh it.", level=3, levels=4, reason="")
        last = Prompts().render(name, hint="Weigh it.", level=4, levels=4, reason="")
        assert "3 of 4" in third
        assert "repeat" not in third
        assert "repeat" in last


def test_the_last_result_before_the_limit_asks_for_no_decision():
    values = {"study": "Weigh it.", "result": "3 g.", "nothing_left": False, **DECISIONS}
    assert "What next?" in Prompts().render("result", **values, limit=False)
    assert "What next?" not in Prompts().render("result", **values, limit=True)


def test_a_decision_is_asked_for_in_words_that_count_as_one():
    for name in ("ask_again", "result", "start"):
        text = Prompts().render(name, **VALUES[name]).lower()
        assert all(phrase in text for phrase in ("redo the study", "explore new subtopic", "draw"))


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_with_the_syntax_of_a_template_is_shown_as_it_is(text: str):
    for name, values in VALUES.items():
        for key in (key for key, value in values.items() if isinstance(value, str) and value):
            assert text in Prompts().render(name, **values | {key: text})


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
@example("{{ topic }}")
@example("\0\u202e\x1b[31m")
def test_any_text_is_shown_to_the_character(text: str):
    assert f"\n\n{text}\n\n" in Prompts().render("topic", topic=text, nothing_left=False)


def test_a_tree_with_the_syntax_of_a_template_plays_as_text():
    document = json.loads(dump_tree(make_tree([[]], [1])))
    text = "{{ ''.__class__ }} {% include 'end' %}"
    document["topic"] = text
    document["subtopics"][0] |= {"text": f"What of {text}?", "hints": [f"{text} {i}" for i in range(4)]}
    document["subtopics"][0]["studies"][0] |= {"text": f"Try {text}.", "result": f"It gave {text}."}
    tree = parse_tree(json.dumps(document).encode())
    engine = Engine(tree, Rules(threshold=0.5))
    shown = ObservationRenderer(tree, Prompts(), engine)
    hit = Reading(0, 1.0)
    events: list[Event] = [engine.start(0)]
    for reading in (Reading(), hit, hit):
        events.append(engine.advance(events[-1].state, reading))
    assert all(text in shown.render(event) for event in events)


def test_a_template_of_the_folder_takes_the_place_of_the_packaged_one(folder: Path):
    prompts = own(folder)
    assert prompts.render("topic", topic="Why salt?", turns=3) == "Mine: Why salt?"
    assert prompts.render("end") == Prompts().render("end")
    assert prompts.folder == folder


def test_the_folder_may_be_given_as_text_and_with_a_tilde(folder: Path, monkeypatch: pytest.MonkeyPatch):
    own(folder)
    monkeypatch.setenv("HOME", str(folder.parent))
    for given_as in (str(folder), f"~/{folder.name}"):
        assert Prompts(given_as).render("topic", topic="x") == "Mine: x"


def test_other_files_in_the_folder_are_left_alone(folder: Path):
    (folder / "notes.txt").write_text("{{ nonsense")
    assert own(folder).render("topic", topic="x") == "Mine: x"


def test_an_empty_folder_changes_nothing(folder: Path):
    assert Prompts(folder).digest == Prompts().digest


def test_a_template_may_take_in_another(folder: Path):
    prompts = own(folder, "conclusion", "{% include 'limit' %} Hurry.")
    assert prompts.render("conclusion") == Prompts().render("limit") + " Hurry."


def test_blocks_leave_no_blank_lines(folder: Path):
    prompts = own(folder, "topic", "a\n  {% if turns %}\nb\n  {% endif %}\nc\n")
    assert prompts.render("topic", turns=1) == "a\nb\nc"


def test_a_folder_that_is_not_there_is_refused_by_name(folder: Path):
    (folder / "file").write_text("")
    for path in (folder / "nosuch", folder / "file", "~nosuchuser/x", "x" * 5_000):
        with pytest.raises(
            OptionError, match=r"no folder of templates at '.*'; give an existing one, 'default' or 'paper'"
        ):
            Prompts(path)


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
        Prompts(folder)


def test_a_byte_order_mark_and_line_ends_of_windows_are_not_shown(folder: Path):
    (folder / "end.md").write_bytes(b"\xef\xbb\xbfDone.\r\nBye.")
    assert Prompts(folder).render("end") == "Done.\nBye."


@pytest.mark.parametrize("call", ["range(9)", "lipsum()"])
def test_a_template_has_no_functions_of_its_own(folder: Path, call: str):
    with pytest.raises(OptionError, match="is undefined"):
        own(folder, "end", f"{{{{ {call} }}}}").render("end")


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
        Prompts(folder)
    assert "secret\n" not in str(caught.value)


def test_every_bad_template_is_told_at_once(folder: Path):
    for name in ("one", "two"):
        (folder / f"{name}.md").write_text("x")
    (folder / "end.md").write_text("x" * (MAX_TEMPLATE_BYTES + 1))
    with pytest.raises(OptionError) as caught:
        Prompts(folder)
    assert all(f"{name}.md" in str(caught.value) for name in ("one", "two", "end"))
    for name in ("one", "two"):
        (folder / f"{name}.md").unlink()
    for name in ("end", "limit"):
        (folder / f"{name}.md").write_text("{{")
    with pytest.raises(OptionError, match=r"(?s)'end\.md'.*'limit\.md'"):
        Prompts(folder)


def test_an_unknown_template_is_refused_with_a_suggestion():
    with pytest.raises(OptionError, match=r"no template 'resutl' \(did you mean 'result'\?\); known: start, "):
        Prompts().render("resutl")


@pytest.mark.parametrize(
    "source",
    [
        "{{ nosuch }}",
        "{{ topic.nosuch }}",
        "{{ 1 / 0 }}",
        "{{ topic + 1 }}",
        "{{ topic.encode('nosuch') }}",
        "{{ '%d' % topic }}",
        "{% include 'topic' %}",
    ],
)
def test_a_template_that_fails_names_itself_and_the_values_it_may_use(folder: Path, source: str):
    prompts = own(folder, "topic", source)
    with pytest.raises(OptionError, match=rf"template 'topic\.md' in '{folder}': .*; known values: topic, turns$"):
        prompts.render("topic", topic="Why?", turns=3)


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ ''['__class__'] }}",
        "{{ ''|attr('__class__') }}",
        "{{ topic.__class__.__base__.__subclasses__() }}",
        "{{ lipsum.__globals__ }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ self._TemplateReference__context }}",
        "{{ '{0.__class__}'.format(topic) }}",
        "{{ '{x.__class__}'.format_map({'x': topic}) }}",
        "{{ (lambda: 1)() }}",
        "{{ [1].append(2) }}",
        "{% set x = {} %}{{ x.update(a=1) }}",
        "{% include '/etc/passwd' %}",
        "{% include '../render.py' %}",
        "{% import 'os' as os %}",
        "{% extends 'nosuch' %}",
        "{% for i in range(1000000) %}{% endfor %}",
        "{{ namespace.__init__ }}",
        "{{ open('/etc/passwd').read() }}",
        "{{ __import__('os') }}",
    ],
)
def test_no_template_leaves_the_sandbox(folder: Path, source: str):
    with pytest.raises(OptionError, match=r"template 'topic\.md' in "):
        own(folder, "topic", source).render("topic", topic="Why?", turns=3)


LONG = "x" * (MAX_LITERAL + 1)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{{ 'x' * 10 }}", "take numbers alone"),
        ("{{ [1] * 10 }}", "take numbers alone"),
        ("{{ 2 ** 3 }}", r"no '\*\*'"),
        ("{{ '%9d' % 1 }}", "take numbers alone"),
        ("{{ 'x'|center(9) }}", "No filter named 'center'"),
        ("{{ '%9d'|format(1) }}", "No filter named 'format'"),
        ("{{ topic.ljust(9) }}", "unsafe"),
        ("{{ '{:9}'.format(1) }}", "unsafe"),
        ("{{ '{x:9}'.format_map({'x': 1}) }}", "unsafe"),
        ("{{ topic.replace('', topic) }}", "unsafe"),
        ("{{ topic.__mul__(9) }}", "unsafe"),
        ("{{ (5).to_bytes(9) }}", "unsafe"),
        ("{% macro m() %}x{% endmacro %}{{ m() }}{{ m() }}", "line 1: 'macro' is not part"),
        ("{% set x %}x{% endset %}", "'set without =' is not part"),
        ("{% with x = [topic, topic] %}{{ x }}{% endwith %}", "'with' is not part"),
        ("{% block b %}x{% endblock %}{{ self.b() }}", "'block' is not part"),
        ("{% filter upper %}x{% endfilter %}", "'filter' is not part"),
        ("{% set x = topic ~ topic %}", "'set' takes a value as it is"),
        ("{% set x = (topic if turns else [topic, topic]) %}", "'set' takes a value as it is"),
        ("{% for i in [1] recursive %}x{% endfor %}", "'recursive' is not part"),
        (f"{{% for i in '{LONG}' %}}{{% endfor %}}", "or a short list"),
        (f"{{% for i in {list(LONG)} %}}{{% endfor %}}", "or a short list"),
        (f"{{% for i in topic|default('{LONG}') %}}{{% endfor %}}", "or a short list"),
        ("{% for i in topic|join(topic) %}{% endfor %}", "or a short list"),
        ("{% for i in topic ~ topic %}{% endfor %}", "or a short list"),
        ("{% for i in topic %}{% for j in topic %}{% for k in topic %}{% endfor %}{% endfor %}{% endfor %}", "2 deep"),
        ("{% for i in topic %}{% include 'end' %}{% endfor %}", "a loop includes a template"),
        ("{% include 'end' %}{% include 'end' %}{% include 'end' %}", "more than 2 templates are included"),
        ("{{ " + "9" * 5000 + " }}", "cannot be compiled"),
        ("{{ " + "(" * 5000 + ")" * 5000 + " }}", "cannot be compiled"),
    ],
)
def test_nothing_makes_a_text_grow_beyond_its_template_and_values(folder: Path, source: str, reason: str):
    with pytest.raises(OptionError, match=rf"(?s)template 'topic\.md' in .*{reason}"):
        own(folder, "topic", source).render("topic", topic="Why?", turns=3)


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in topic %}{% for j in topic %}{{ topic }}{% endfor %}{% endfor %}",
        "{{ [topic, topic, topic]|join(topic) }}",
    ],
)
def test_a_text_has_a_greatest_length(folder: Path, source: str):
    prompts = own(folder, "topic", source)
    assert len(prompts.render("topic", topic="x" * 10)) <= 1000
    with pytest.raises(OptionError, match=r"longer than 1,000,000 characters"):
        prompts.render("topic", topic="x" * (MAX_TEXT // 5))


def test_loops_choices_and_filters_are_at_hand(folder: Path):
    source = (
        "{% set n = turns %}{% for i in topic.split() if i %}{{ loop.index * 2 }}{{ i|upper }}{{ n % 2 }}"
        "{{ ', ' if not loop.last }}{% endfor %}{% for d in ['a', 'b'] %}{{ d ~ '.' }}{% endfor %}"
        "{{ topic.split()[:1]|join(' ')|lower|trim }}{% include 'end' %}"
    )
    (folder / "end.md").write_text("!")
    assert own(folder, "topic", source).render("topic", topic="Why salt", turns=3) == "2WHY1, 4SALT1a.b.why!"


def test_a_template_cannot_change_the_values_it_is_given(folder: Path):
    values = ["salt"]
    with pytest.raises(OptionError, match="unsafe"):
        own(folder, "topic", "{{ topic.append('sugar') }}").render("topic", topic=values)
    assert values == ["salt"]


def test_what_one_rendering_sets_is_gone_in_the_next(folder: Path):
    prompts = own(folder, "topic", "{% if seen is defined %}again{% else %}first{% endif %}{% set seen = 1 %}")
    assert [prompts.render("topic") for _ in range(3)] == ["first"] * 3


def test_the_digest_follows_the_words_and_not_the_folder(folder: Path):
    plain = Prompts().digest
    assert len(plain) == 64
    mine = own(folder).digest
    assert mine != plain
    assert own(folder, "topic", "Mine: {{ topic }}!").digest not in (mine, plain)
    assert own(folder, "topic", "Mine: {{ topic }}").digest == mine
    own(folder, "end", "A")
    one_way = own(folder, "limit", "B").digest
    own(folder, "end", "B")
    assert own(folder, "limit", "A").digest != one_way, "the same words under other names are other templates"


DIGEST = "import sys; from inquitree_gym.prompts import Prompts; print(Prompts(sys.argv[1]).digest, Prompts().digest)"


@pytest.mark.e2e
def test_the_digest_is_the_same_in_every_process(folder: Path):
    expected = [own(folder).digest, Prompts().digest]
    environment = os.environ | {"PYTHONHASHSEED": "99", "LC_ALL": "C", "PYTHONUTF8": "0"}
    run = subprocess.run(
        [sys.executable, "-c", DIGEST, str(folder)], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == expected


def test_a_folder_changed_later_changes_nothing(folder: Path):
    prompts = own(folder)
    before = prompts.digest
    (folder / "topic.md").write_text("Another: {{ topic }}")
    assert prompts.render("topic", topic="x") == "Mine: x"
    assert prompts.digest == before


def test_templates_survive_pickling_even_where_their_folder_does_not(folder: Path):
    prompts = own(folder)
    assert prompts.render("topic", topic="x") == "Mine: x", "the compiled templates are not pickled"
    packed = pickle.dumps(prompts)
    (folder / "topic.md").unlink()
    folder.rmdir()
    again = pickle.loads(packed)
    assert again.render("topic", topic="x") == "Mine: x"
    assert (again.digest, again.folder) == (prompts.digest, folder)
