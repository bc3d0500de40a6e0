"""The docs say what is so: their Python runs, their links lead somewhere, and they leave nothing out."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from inspect import signature
from pathlib import Path
from textwrap import indent
from unittest import mock
from urllib.parse import unquote

import pytest
from pydantic import BaseModel

from inquitree_gym import Rules, log, wrappers
from inquitree_gym.baselines import AGENT_NAMES, PROJECTION_AGENT_NAMES
from inquitree_gym.cli import commands
from inquitree_gym.envs import ProjectionEnv
from inquitree_gym.inquiry.prompts import TEMPLATE_NAMES
from inquitree_gym.kinds import KINDS, kind
from inquitree_gym.llm import ChatModel
from inquitree_gym.log.records import line_adapter
from inquitree_gym.projection.judging import recorded_alignment
from inquitree_gym.projection.observations import TEMPLATE_NAMES as PROJECTION_TEMPLATE_NAMES
from inquitree_gym.runs.specs import CHAT_SETTINGS
from inquitree_gym.runs.study import StudyConfig
from inquitree_gym.trees import builtin_ids, document
from inquitree_gym.trees.rules import RULES

pytestmark = pytest.mark.weights

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
ROOT_PAGES = [ROOT / f"{stem}.md" for stem in ("README", "ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "SECURITY")]
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
LINKING = [*ROOT_PAGES, *sorted(DOCS.rglob("*.md"))]
GENERATED = {DOCS / "trees" / "README.md"} | {
    DOCS / "api" / name
    for name in re.findall(r"\]\((\w+\.md)\)", (DOCS / "api" / "index.md").read_text(encoding="utf-8"))
}
"""Pages that exist on the site alone."""

BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
CONSTANTS = {
    "inquiry.md": ("text_limits.MAX_ACTION_LENGTH", "text_limits.MAX_OBSERVATION"),
    "readings-of-the-paper.md": ("text_limits.MAX_ACTION_LENGTH",),
    "llm-agents.md": ("baselines.llm.CONTEXT", "llm.model.MAX_REPLY", "llm.retry.FIRST_REPLY"),
    "embedders.md": ("embeddings.vectors.CACHE_SIZE", "inquiry.matching.CACHE_SIZE", "embeddings.local.MINILM_DIM"),
    "trees-format.md": (
        "trees.disclosure.MAX_DISCLOSED",
        "trees.fields.MAX_TEXT",
        "trees.document.MAX_SUBTOPICS",
        "files.MAX_TASK",
    ),
}
"""Numbers that a page gives, by the constants behind them."""
VERBS = commands()


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path, language: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, file name (or an empty string) and source of every block in one language."""
    text = text_of(page)
    for found in BLOCK.finditer(text):
        if found.group(1) == language:
            yield text.count("\n", 0, found.start(3)), found.group(2) or "", found.group(3)


def prose(page: Path) -> str:
    return BLOCK.sub("", text_of(page))


def slug(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # the async example forks
@pytest.mark.parametrize("page", [page for page in PAGES if any(blocks(page, "python"))], ids=name)
@pytest.mark.usefixtures("drawn")
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _, file, source in (*blocks(page, "json"), *blocks(page, "python")):
        if file:
            Path(file).write_text(source, encoding="utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    scripts = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}  # examples start `inquitree`
    with mock.patch.dict(os.environ, scripts):
        for line, needs, source in blocks(page, "python"):
            if needs:  # a package that does not go with the others; tests/integrations run the example
                continue
            # Blank lines before it, so that a traceback names the line of the page.
            exec(compile("\n" * line + source, name(page), "exec"), names)


def test_the_first_example_of_the_readme_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    page = ROOT / "README.md"
    exec(compile(next(source for *_, source in blocks(page, "python")), name(page), "exec"), {"__name__": "__main__"})
    *_, last = capsys.readouterr().out.splitlines()
    assert last == "concluded 23 1.0"
    assert f"`{last}`" in prose(page)
    assert "The reward comes once, at the end." in prose(page)


@pytest.mark.parametrize("page", LINKING, ids=name)
def test_every_relative_link_of_a_page_leads_somewhere(page: Path) -> None:
    dead = []
    for link in LINK.findall(prose(page)):
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        if re.match(r"[a-z]+:", link) or target in GENERATED:
            continue
        if not target.exists() or (anchor and slug(anchor) not in map(slug, HEADING.findall(text_of(target)))):
            dead.append(link)
    assert not dead


def test_the_map_of_the_docs_names_every_page() -> None:
    linked = set(LINK.findall(text_of(DOCS / "index.md")))
    assert {page.name for page in DOCS.glob("*.md")} - {"index.md"} <= linked


def sections(page: str) -> dict[str, str]:
    """Return what the page of the command line says of each verb."""
    parts = re.split(r"^## inquitree (\S+).*$", page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def options_of(verb: str) -> set[str]:
    options = {option for param in VERBS[verb].params for option in (*param.opts, *param.secondary_opts)}
    return {option for option in options if option.startswith("--")}


def test_the_page_of_the_command_line_has_every_verb_and_no_option_of_none() -> None:
    page = text_of(DOCS / "cli.md")
    assert sections(page).keys() == VERBS.keys()
    assert set(OPTION.findall(page)) - {"--help"} <= set().union(*map(options_of, VERBS))


def test_the_site_shows_every_option_of_a_verb_with_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    page = import_module("cli_options").with_options(text_of(DOCS / "cli.md"))
    for verb, section in sections(page).items():
        rows = dict(re.findall(r"^\| `(--[a-z-]+)[^`]*` \| (.*) \|$", section, re.MULTILINE))
        assert rows.keys() == {param.opts[0] for param in VERBS[verb].params if param.opts[0].startswith("--")}
        for param in VERBS[verb].params:
            if param.opts[0] in rows and param.default not in (None, "", False):
                # Of a switch with two names, the help shows the one that holds.
                default = param.opts[0].lstrip("-") if param.secondary_opts else param.default
                assert f"{default}" in rows[param.opts[0]]


def test_the_pages_name_every_environment_rule_agent_and_verb() -> None:
    environments, agents = text_of(DOCS / "inquiry.md"), text_of(DOCS / "agents.md")
    numbers = ", ".join(tree.removeprefix("paper") for tree in builtin_ids()).replace(", 29", " or 29")
    assert f"N is {numbers}" in environments
    for rule in Rules.names():
        assert f"| `{rule}` |" in environments
    for agent in AGENT_NAMES:
        assert f"| `{agent}` |" in agents.partition("## Agents of projections")[0]
    for agent in PROJECTION_AGENT_NAMES:
        assert f"| `{agent}` |" in agents.partition("## Agents of projections")[2]
    verbs = text_of(DOCS / "cli.md").partition("\n## ")[0]
    for verb in VERBS:
        assert f"| [`{verb}`](" in verbs


def test_every_extra_is_explained() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert [extra for extra in extras if f"`{extra}`" not in text_of(DOCS / "index.md")] == []


def test_the_readings_name_every_rule() -> None:
    page = text_of(DOCS / "readings-of-the-paper.md")
    assert [rule for rule in Rules.names() if f"`{rule}" not in page] == []


def test_the_page_of_inquiries_names_every_info_key_template_and_wrapper() -> None:
    import gymnasium as gym

    env = gym.make("InquiTree-paper12-v0", privileged=True)
    _, info = env.reset(seed=0)
    page = text_of(DOCS / "inquiry.md")
    wanted = (*info, *info["privileged"], *TEMPLATE_NAMES)
    assert [key for key in wanted if f"`{key}`" not in page] == []
    assert [wrapper for wrapper in wrappers.__all__ if f"**`{wrapper}(" not in page] == []


def test_the_page_of_projections_names_every_keyword_info_key_and_template() -> None:
    env = ProjectionEnv("paper12", privileged=True, render_mode="ansi")
    env.reset(seed=0)
    info = env.step("")[4]
    section = text_of(DOCS / "projectionbench.md")
    keywords = [name for name, each in signature(ProjectionEnv).parameters.items() if each.kind is each.KEYWORD_ONLY]
    assert [name for name in keywords if f"| `{name}` |" not in section] == []
    wanted = (*info, *info["privileged"], *PROJECTION_TEMPLATE_NAMES)
    assert [key for key in wanted if key != "privileged" and f"`{key}`" not in section] == []
    assert [mode for mode in env.metadata["render_modes"] if f'`"{mode}"`' not in section] == []


def test_the_page_of_language_models_has_every_setting_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", text_of(DOCS / "llm-agents.md"), re.MULTILINE))
    agents = [agent for each in KINDS for agent in each.play.model_agents.values()]
    own = {name for agent in agents for name in signature(agent).parameters}
    assert rows.keys() == {*CHAT_SETTINGS, *own}
    for field in fields(ChatModel):
        if field.name != "clock" and isinstance(field.default, int | float):
            assert rows[field.name] == str(field.default)
    assert rows["context"] == "`None`"


@pytest.mark.parametrize(
    ("env", "pages"), [("inquiry", ("scoring.md", "vigilance.md")), ("projection", ("projectionbench.md",))]
)
def test_the_pages_name_every_measure_as_the_values_of_a_score_do(env: str, pages: tuple[str, ...]) -> None:
    said = "".join(text_of(DOCS / page) for page in pages)
    names = {measure.name for measure in kind(env).results.measures}
    if env == "inquiry":  # a rate over one kind of showings, such as "hit_rate, first", is named by both parts
        names = {part for each in names for part in each.split(", ")}
    assert [each for each in sorted(names) if f"`{each}`" not in said] == []


def test_the_page_of_the_format_lists_every_rule_of_the_linter() -> None:
    rows = re.findall(r"^\| `(T\d+)` \| (\w+) \| (.+) \|$", text_of(DOCS / "trees-format.md"), re.MULTILINE)
    assert rows == [(code, rule.severity, rule.summary) for code, rule in RULES.items()]


def test_the_page_of_the_format_names_every_field_of_a_tree() -> None:
    page = text_of(DOCS / "trees-format.md")
    models = [model for model in vars(document).values() if isinstance(model, type) and issubclass(model, BaseModel)]
    fields = {field for model in models for field in model.model_fields}
    assert [field for field in sorted(fields) if f"`{field}`" not in page] == []


def test_the_lines_on_the_page_of_the_logs_are_lines_of_a_log() -> None:
    records = [json.loads(source) for _, _, source in blocks(DOCS / "logs.md", "json")]
    kinds = [kind(name) for name in ("inquiry", "inquiry", "inquiry", "projection", "projection")]
    read = [line_adapter().validate_python(record, context=each) for record, each in zip(records, kinds, strict=True)]
    assert [record.kind for record in read] == ["header", "reply", "turn", "turn", "footer"]
    for record, shown in zip(read, records, strict=True):
        assert list(record.model_dump()) == list(shown)
    projected = read[3].event
    assert list(projected.model_dump()) == list(records[3]["event"])
    aligned = recorded_alignment(projected.judged)
    assert aligned is not None
    assert projected.judged.f1 == pytest.approx(float(aligned.score().f1), abs=1e-4)


def test_the_page_of_the_logs_names_every_field() -> None:
    page = text_of(DOCS / "logs.md")
    parts = (log.Header, log.Reply, log.Turn, log.Failure, log.Footer)
    fields = {field for part in parts for field in part.model_fields} - {"kind"}
    inquiry, projection = kind("inquiry"), kind("projection")
    fields |= {f"event.{field}" for field in inquiry.event.model_fields}
    fields |= {f"setup.{field}" for each in (inquiry, projection) for field in each.setup.model_fields}
    fields |= projection.event.model_fields.keys() - {"kind"}
    assert [field for field in sorted(fields) if f"`{field}`" not in page] == []


def test_the_studies_on_the_page_of_runs_are_valid() -> None:
    studies = [source for _, _, source in blocks(DOCS / "runs.md", "toml")]
    read = [StudyConfig.model_validate(tomllib.loads(source)) for source in studies]
    assert [study.env for study in read] == ["inquiry", "projection"]


def test_the_code_of_the_toy_kind_is_quoted_from_its_files() -> None:
    quoted = [(file.split('"')[1], source) for _, file, source in blocks(DOCS / "kinds.md", "py")]
    assert quoted
    strange = [
        (file, source)
        for file, source in quoted
        if not any(code in text_of(ROOT / file) for code in (source, indent(source, "    ")))  # members of a class
    ]
    assert strange == []


@pytest.mark.parametrize(("page", "constant"), [(page, each) for page, those in CONSTANTS.items() for each in those])
def test_a_number_on_a_page_is_the_one_in_force(page: str, constant: str) -> None:
    module, _, attribute = constant.rpartition(".")
    value = getattr(import_module(f"inquitree_gym.{module}"), attribute)
    assert re.search(rf"(?<![\d,]){value:,}(?![\d,])", text_of(DOCS / page))
