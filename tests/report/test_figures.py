"""Charts keep all that they draw inside their frame, whatever the logs name."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from inquitree_gym.report.figures import bars, short
from inquitree_gym.report.tables import ABSENT
from inquitree_gym.scoring import Estimate

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


def test_labels_fit_and_hold_no_strange_characters():
    assert short("an agent with a long name, its judge") == "an agent with …me, its judge"
    assert len(short("a" * 99)) == 28
    assert short("a\n b\ud800") == "a b?"
    assert short(" ") == ABSENT
