"""The list of models: every date has its source, every name one entry, every fault its place."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.errors import OptionError
from inquitree_gym.results.cutoff import DateRange, ModelDates, find_model, load_models, parse_date

NAMES = {
    "openai/o3": "o3",
    "o3-2025-04-16": "o3",
    "openrouter/openai/gpt-5": "GPT-5",
    "gpt-5-mini": "GPT-5 mini",
    "azure/gpt-5-2025-08-07": "GPT-5",
    "anthropic/claude-sonnet-4-5": "Claude Sonnet 4.5",
    "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0": "Claude Sonnet 4.5",
    "vertex_ai/claude-sonnet-4-5@20250929": "Claude Sonnet 4.5",
    "anthropic/claude-sonnet-4-20250514": "Claude Sonnet 4",
    "openrouter/anthropic/claude-opus-4.1": "Claude Opus 4.1",
    "gemini/gemini-2.5-pro": "Gemini 2.5 Pro",
    "together_ai/deepseek-ai/DeepSeek-R1": "DeepSeek-R1",
    # Other models, or names behind which models change.
    "openai/o3-mini": None,
    "openai/o3-pro": None,
    "gpt-5-pro": None,
    "deepseek/deepseek-reasoner": None,
    "deepseek-ai/DeepSeek-R1-0528": None,
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B": None,
    "gemini/gemini-2.5-flash-lite": None,
    "my-own-o3": None,
}

OWN = """
[sources]
ours = "https://example.org/card"

[[models]]
name = "Ours"
patterns = ["ours-*"]
cutoff = { date = "2024", source = "ours" }

[[models]]
name = "o3 as we know it"
patterns = ["o3"]
cutoff = { date = "2023-11", source = "ours" }
latest = { date = "2024-02-10", source = "ours" }
released = { date = "2025-04", source = "ours" }
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "models.toml"
    file.write_text(text, encoding="utf-8")
    return file


# The package's own


@pytest.mark.parametrize(("name", "model"), NAMES.items())
def test_a_name_of_litellm_finds_its_model_and_no_other(name: str, model: str | None):
    assert [entry.name for entry in load_models() if entry.fits(name)] == ([] if model is None else [model])


def test_the_models_of_the_paper_are_there_with_all_dates():
    models = {entry.name: entry for entry in load_models()}
    for name in ("o3", "DeepSeek-R1", "Gemini 2.5 Pro", "Claude Sonnet 4.5", "GPT-5"):
        assert models[name].released is not None
    assert models["Claude Sonnet 4.5"].window == DateRange(date(2025, 1, 1), date(2025, 7, 31))
    assert models["Claude Sonnet 4.5"].written_cutoff == "2025-01 to 2025-07"
    assert models["GPT-5"].window == DateRange(date(2024, 9, 30), date(2024, 9, 30))


# The user's


def test_entries_of_the_user_come_first(tmp_path: Path):
    models = load_models(write(tmp_path, OWN))
    assert len(models) == 2 + len(load_models())
    ours = find_model(models, "local/Ours-7B")
    assert ours is not None
    assert ours.window == DateRange(date(2024, 1, 1), date(2024, 12, 31))
    o3 = find_model(models, "openai/o3")
    assert o3 is not None
    assert (o3.name, o3.window) == ("o3 as we know it", DateRange(date(2023, 11, 1), date(2024, 2, 10)))
    assert find_model(models, "openai/gpt-5") is not None
    assert find_model(models, "openai/nothing-of-the-kind") is None


FAULTS = {
    "a source that is not there": (
        '"2024", source = "ours"', '"2024", source = "hers"',
        r"Ours, cutoff: the source 'hers' is not in \[sources\]",
    ),
    "no source": (', source = "ours" }\n\n', " }\n\n", "Ours › cutoff › source: Field required"),
    "no date": ('"2024"', '"early 2024"', "Ours › cutoff › date: .*'early 2024' is not a date; write it as"),
    "no day": ("2024-02-10", "2024-02-30", "o3 as we know it › latest › date: .*'2024-02-30' is not a date of the"),
    "a month 13": ("2023-11", "2023-13", "o3 as we know it › cutoff › date: .*'2023-13'"),
    "a year 0": ('"2024"', '"0000"', "Ours › cutoff › date: .*'0000' is not a date of the calendar"),
    "the wrong way round": ("2024-02-10", "2023-10", r"o3 as we know it: .*latest \(2023-10\) is before cutoff"),
    "released before its cutoff": ('"2025-04"', '"2023-10"', r"released \(2023-10\) is before cutoff"),
    "a pattern with a provider": ('"o3"', '"openai/o3"', "o3 as we know it › patterns: .*'openai/o3' never matches"),
    "a pattern in capitals": ('"ours-*"', '"Ours-*"', r"Ours › patterns: .*'Ours-\*' never matches"),
    "one pattern twice": ('"o3"', '"ours-*"', r"o3 as we know it: the pattern 'ours-\*' is already used by Ours"),
    "no pattern": ('["o3"]', "[]", "o3 as we know it › patterns: List should have at least 1 item"),
    "a field of no meaning": ("[sources]", "colour = 3\n[sources]", "colour: Extra inputs are not permitted"),
    "no models": (OWN[OWN.index("[[") :], "", "the file: Field required"),
    "no TOML": ("[[models]]", "[[models", "is not TOML"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "told"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_told_with_its_place(tmp_path: Path, old: str, new: str, told: str):
    with pytest.raises(OptionError, match=told):
        load_models(write(tmp_path, OWN.replace(old, new, 1)))


def test_several_faults_are_told_at_once(tmp_path: Path):
    text = OWN.replace('date = "2024",', 'date = "soon",').replace("2023-11", "never")
    with pytest.raises(OptionError) as caught:
        load_models(write(tmp_path, text))
    assert "'soon'" in str(caught.value)
    assert "'never'" in str(caught.value)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path):
    with pytest.raises(OptionError, match=r"cannot read '.*none\.toml': No such file"):
        load_models(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'name = "caf\xe9"')
    with pytest.raises(OptionError, match=r"latin\.toml' must be UTF-8 text, got other bytes at 11\."):
        load_models(tmp_path / "latin.toml")


# Dates


@given(st.dates(date(1600, 1, 1), date(2200, 12, 31)))
def test_a_day_lies_in_its_month_and_its_month_in_its_year(day: date):
    text = day.isoformat()
    year, month, exact = (parse_date(text[:length]) for length in (4, 7, 10))
    assert exact == DateRange(day, day)
    assert year.first <= month.first <= day <= month.last <= year.last
    assert (month.last - month.first).days in range(27, 31)
    assert (year.last - year.first).days in (364, 365)


@pytest.mark.parametrize(
    "text", ["", "24", "2024-1", "2024-01-1", "2024-00", "2024-02-30", " 2024", "2024-01-01T", "２０２４", "2024-01-00"]
)
def test_what_is_no_date_is_refused(text: str):
    with pytest.raises(ValueError, match="is not a date"):
        parse_date(text)


def test_a_model_of_one_day_has_a_window_of_one_day():
    model = ModelDates.model_validate({"name": "m", "patterns": ["m"], "cutoff": {"date": "2024-06-01", "source": "s"}})
    assert model.window == DateRange(date(2024, 6, 1), date(2024, 6, 1))
    assert model.written_cutoff == "2024-06-01"
