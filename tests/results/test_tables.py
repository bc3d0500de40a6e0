"""Tables of a report in every format: what cells show, and that no text becomes markup, a formula or a command."""

from __future__ import annotations

import csv
import io
import re

import pytest

from inquitree_gym.results.statistics import Estimate
from inquitree_gym.results.tables import (
    _TEX,
    ABSENT,
    TableCell,
    as_csv,
    cell,
    counted,
    escaped,
    latex,
    make_table,
    markdown,
    shaded,
    table_csv,
    tex,
)
from tests.results.html import HOSTILE


def test_cells_of_every_kind():
    assert cell(None).text == ABSENT
    assert cell(1234).text == "1,234"
    assert (cell(0.25).text, cell(12.34).text, cell(-0.00001).text) == ("0.250", "12.3", "0.000")
    assert cell(Estimate(0.5, -0.001, 0.75, 5, 9)) == TableCell("0.500", "[0.00, 0.75]", None)
    assert cell(Estimate(None, None, None, 0, 0)).text == ABSENT


def test_a_mean_tells_its_trees_where_they_are_not_those_of_the_row():
    interval, plain = Estimate(0.5, 0.25, 0.75, 5, 9), Estimate(0.5, None, None, 2, 3)
    assert [counted(each, 5).below for each in (interval, plain)] == ["[0.25, 0.75]", "n = 2"]
    assert [counted(each).below for each in (interval, plain)] == ["[0.25, 0.75] n = 5", "n = 2"]
    assert counted(Estimate(None, None, None, 0, 0), 5) == counted(None) == TableCell(ABSENT)


@pytest.mark.parametrize(
    ("value", "step"), [(0.0, 0), (0.04, 0), (0.26, 3), (1.0, 10), (1.2, 10), (-0.1, 0), (None, None)]
)
def test_shades_of_the_heat_map(value: float | None, step: int | None):
    assert shaded(value).shade == step


def test_markdown_shows_what_logs_hold_as_it_stands():
    table = markdown(make_table("c", ["agent", "Q/|C|"], [["a|b\n# *x* [y](z) <i>", 0.5]]))
    assert table.splitlines()[-1] == r"| a\|b \# \*x\* \[y\](z) \<i\> | 0.500 |"
    assert len({line.count("|") - line.count("\\|") for line in table.splitlines()}) == 1
    assert escaped("`a_b`") == r"\`a\_b\`"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1"])
def test_no_text_in_csv_is_a_formula(text: str):
    ((_, line),) = [list(csv.reader(io.StringIO(as_csv(["a", "b", "c"], [[text, -0.5, None]]))))]
    assert line == [f"'{text}", "-0.5", ""]


def test_a_table_as_csv_has_unrounded_numbers_with_their_intervals():
    whole, few = Estimate(1 / 3, 0.25, 0.75, 5, 9), Estimate(0.5, None, None, 2, 3)
    table = make_table("c", ["agent", "Q", "n"], [["a", whole, 1234], ["=b", few, None], ["c", None, 1 / 3]])
    found = list(csv.reader(io.StringIO(table_csv(table))))
    assert found == [
        ["agent", "Q", "Q, low", "Q, high", "Q, trees", "n"],
        ["a", str(1 / 3), "0.25", "0.75", "5", "1234"],
        ["'=b", "0.5", "", "", "2", ""],
        ["c", "", "", "", "", str(1 / 3)],
    ]


def test_a_table_as_latex_has_the_rules_of_booktabs_and_a_line_for_intervals():
    whole = Estimate(-1 / 3, -0.75, 0.25, 5, 9)
    lines = latex(make_table("Means − all", ["agent", "Q/|C|"], [["a_b", whole], ["[c]", None]]), "means").splitlines()
    assert [line for line in lines if "rule" in line] == [r"\toprule", r"\midrule", r"\bottomrule"]
    assert r"\begin{tabular}{lr}" in lines
    assert r"\caption{Means $-$ all}" in lines
    assert r"\label{tab:means}" in lines
    at = lines.index(r"a\_b & $-$0.333 \\")
    assert lines[at + 1 : at + 3] == [r" & {\scriptsize [$-$0.75, 0.25]} \\", r"{[c]} & -- \\"]
    assert r"agent & Q/\textbar{}C\textbar{} \\" in lines


@pytest.mark.parametrize(
    "text", [HOSTILE, r"\input{/etc/passwd}", "$x^2_{1}$ & 50% #1 ~ `a\\\\", "a\n\n\\end{table}%", "\ud800\x00--"]
)
def test_no_text_is_a_command_of_latex(text: str):
    found = tex(text)
    known = "|".join(re.escape(each) for each in sorted((*_TEX.values(), r"\textbackslash{}"), key=len, reverse=True))
    rest = re.sub(known, "", found)
    assert not re.search(r"[\\{}$&#_%~^<>|\n]", rest), "nothing but escapes of single characters is left"
    table = latex(make_table(text, ["agent"], [[text]]), "t")
    assert table.count(r"\end{table}") == 1
    assert len(table.splitlines()) == len(latex(make_table("c", ["agent"], [["a"]]), "t").splitlines())


def test_a_table_shows_headings_and_its_csv_has_names():
    lines = [["a_b", 0.5]]
    table = make_table("c", ["agent", "hit_rate"], lines, headings={"hit_rate": "hit rate"})
    assert table.heads == ("agent", "hit rate")
    assert markdown(table).splitlines()[0] == "| agent | hit rate |"
    assert table_csv(table).splitlines() == ["agent,hit_rate", "a_b,0.5"]
