"""Charts keep all that they draw inside their frame, whatever the logs name."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inquitree_gym.results.figures import DOTS, FORMATS, Chart, bars, curves, differences, levels, short
from inquitree_gym.results.statistics import Estimate, clustered_mean
from inquitree_gym.results.tables import ABSENT

pytestmark = pytest.mark.usefixtures("drawn")

SIDES = ("before the cutoff", "after it")
PAIR = (Estimate(0.5, 0.25, 0.75, 6, 6), Estimate(None, None, None, 0, 0))


@pytest.mark.parametrize("models", [1, 2, 5])
def test_the_legend_of_paired_bars_is_inside_the_chart_below_its_axis(models: int):
    chart = bars("cutoff", "coverage r_c", {f"llm {i}": PAIR for i in range(models)}, SIDES)
    root = ElementTree.fromstring(chart.document())
    *_, width, height = (float(each) for each in root.attrib["viewBox"].split())
    places = {
        "".join(text.itertext()): [float(text.attrib[axis]) for axis in "xy"]
        for text in root.iter("{http://www.w3.org/2000/svg}text")
    }
    axis = places["coverage r_c"][1]
    for label in SIDES:
        x, y = places[label]
        assert 0 < x < width
        assert axis < y < height


def test_without_sides_there_is_one_bar_per_label_and_no_legend():
    chart = bars("c", "coverage r_c", {"ours": PAIR[:1], "theirs": PAIR[1:]})
    assert chart.caption == "coverage r_c by agent"
    drawn = re.sub(r"\s+", " ", chart.document())
    assert "no value" in drawn
    assert "legend" not in drawn


SVG = "{http://www.w3.org/2000/svg}"
FEW = clustered_mean([("t1", 0.2), ("t2", 0.6)])
MANY = clustered_mean((f"t{i}", i / 5) for i in range(6))


def drawn(chart: Chart) -> tuple[Axes, Figure]:
    figure = Figure()
    axes = figure.add_subplot()
    chart.draw(axes)
    return axes, figure


def texts(chart: Chart) -> list[str]:
    return ["".join(text.itertext()) for text in ElementTree.fromstring(chart.document()).iter(f"{SVG}text")]


def test_every_chart_comes_as_svg_pdf_and_png_from_one_drawing():
    chart = levels("c", ("fake level", "hits"), {"a": [(0.0, FEW), (3.0, MANY)]})
    files = chart.files()
    assert tuple(files) == FORMATS == ("svg", "pdf", "png")
    assert files["pdf"].startswith(b"%PDF")
    assert files["png"].startswith(b"\x89PNG")
    assert ElementTree.fromstring(files["svg"]).tag == f"{SVG}svg"
    assert chart.files() == files, "equal charts are equal files"
    assert b'fill="#ffffff"' in files["svg"]
    assert 'fill="#ffffff"' not in chart.inline(files["svg"]), "a page has a ground of its own"
    assert b"Type3" not in files["pdf"], "journals want fonts that can be edited"


@pytest.mark.parametrize("make", ["bars", "differences", "levels"])
def test_single_trees_stand_where_an_interval_cannot(make: str):
    charts = {
        "bars": lambda each: bars("c", "coverage", {"a": [each]}),
        "differences": lambda each: differences("c", "coverage", {"b − a": [each]}),
        "levels": lambda each: levels("c", ("fake level", "hits"), {"a": [(3.0, each)]}),
    }
    few, many = (charts[make](each) for each in (FEW, MANY))
    hollow = [line for line in drawn(few)[0].lines if line.get_markerfacecolor() == "none" and len(line.get_xdata())]
    (dots,) = hollow
    values = dots.get_ydata() if make == "levels" else dots.get_xdata()
    assert list(values) == [0.2, 0.6]
    assert DOTS in few.caption
    assert DOTS not in many.caption
    assert not [line for line in drawn(many)[0].lines if line.get_markerfacecolor() == "none" and len(line.get_xdata())]


def test_fake_level_are_categories_at_even_distances():
    chart = levels("c", ("fake level", "hits"), {"a": [(0.0, MANY), (3.0, MANY), (10.0, MANY)]})
    axes, _ = drawn(chart)
    assert list(axes.get_xticks()) == [0, 1, 2]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "3", "10"]


@pytest.mark.parametrize(("points", "joined"), [(2, False), (3, True)])
@pytest.mark.parametrize("make", [levels, curves])
def test_two_points_are_not_joined_by_a_line(make, points: int, joined: bool):
    chart = make("c", ("x", "y"), {"a": [(float(at), MANY) for at in range(points)]})
    lines = [line for line in drawn(chart)[0].lines if line.get_linestyle() != "None" and len(line.get_xdata()) > 1]
    assert bool(lines) == joined


def test_courses_of_single_trees_are_thin_lines_where_a_band_cannot_be():
    axes, _ = drawn(curves("c", ("x", "y"), {"a": [(float(at), FEW) for at in range(4)]}))
    assert sorted(set(line.get_ydata()[0] for line in axes.lines)) == pytest.approx([0.2, 0.4, 0.6])


@pytest.mark.parametrize("make", [levels, curves])
def test_one_model_alone_has_a_legend(make):
    assert "gpt-9" in texts(make("c", ("x", "y"), {"gpt-9": [(0.0, MANY), (3.0, MANY)]}))


def test_labels_of_a_difference_keep_both_names():
    long = "an agent of a name of thirty letters"
    shown = " ".join(texts(differences("c", "coverage", {f"{long} − random-menu, f3": [MANY]})))
    assert short(long) in shown
    assert "− random-menu, f3" in shown


def test_labels_fit_and_hold_no_strange_characters():
    assert short("an agent with a long name, its judge") == "an agent with …me, its judge"
    assert len(short("a" * 99)) == 28
    assert short("a\n b\ud800") == "a b?"
    assert short("a\x00\u202eb\x1b[0m") == "a b [0m", "no control character reaches an SVG"
    assert short(" ") == ABSENT
