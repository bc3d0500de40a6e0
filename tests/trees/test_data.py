"""The shipped trees: canonical, clean, as large as the catalogue says, and the same everywhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from inquitree_gym.embeddings import ReaderEmbedder
from inquitree_gym.inquiry.tasks import TreeTasks
from inquitree_gym.text_limits import MAX_OBSERVATION
from inquitree_gym.trees import CANARY, CATALOGUE, Tree, builtin_ids, dump_tree, load_tree, parse_tree
from inquitree_gym.trees.catalogue import builtin_file

shipped = pytest.mark.parametrize("name", builtin_ids())


@pytest.fixture
def tree(name: str) -> Tree:
    return load_tree(name)


@shipped
def test_the_file_is_in_canonical_form(name: str, tree: Tree):
    assert dump_tree(tree).encode() == builtin_file(name).read_bytes()


@shipped
def test_the_tree_is_that_of_the_catalogue(name: str, tree: Tree):
    entry = CATALOGUE[name]
    assert entry.distributable
    assert (tree.id, len(tree.subtopics), tree.paper.title, tree.paper.doi) == (
        name,
        entry.subtopics,
        entry.title,
        entry.doi,
    )


@shipped
def test_the_tree_carries_the_canary_and_public_addresses(name: str, tree: Tree):
    assert tree.canary == CANARY
    assert any(source.address.startswith(("https://", "http://")) for source in tree.provenance.sources)


@shipped
def test_the_date_of_publication_claims_no_more_than_its_precision(name: str, tree: Tree):
    _, month, day = tree.paper.published.date.split("-")
    assert day == "01" or tree.paper.published.precision == "day"
    assert month == "01" or tree.paper.published.precision != "year"


@shipped
def test_support_names_a_source_unless_nothing_confirmed_it(name: str, tree: Tree):
    weak = ("unconfirmed",)
    assert all(support.sources for support in tree.provenance.support if support.strength not in weak)
    nodes = [support.node for support in tree.provenance.support]
    assert len(nodes) == len(set(nodes))


@shipped
def test_topic_and_subtopics_ask(name: str, tree: Tree):
    assert tree.topic.endswith("?")
    for subtopic in tree.subtopics:
        assert subtopic.text.endswith("?") or re.match(r"(What|Where|Whether|Which|How)\b", subtopic.text)


@shipped
def test_a_prerequisite_comes_before_what_needs_it(name: str, tree: Tree):
    seen: set[str] = set()
    for subtopic in tree.subtopics:
        assert seen.issuperset(subtopic.requires)
        seen.add(subtopic.id)


@shipped
def test_no_text_holds_what_a_template_would_read(name: str, tree: Tree):
    assert not any(mark in text for text in tree.texts().values() for mark in ("{{", "{%", "{#"))


@shipped
def test_a_study_and_its_result_fit_one_observation(name: str, tree: Tree):
    for study in tree.studies:
        assert len(study.text) + max(map(len, study.shown_texts)) < MAX_OBSERVATION / 2


@pytest.mark.weights
@shipped
def test_the_linter_finds_no_error(name: str, tree: Tree, reader: ReaderEmbedder):
    assert [fault for fault in TreeTasks().lint(tree, reader) if fault.severity == "error"] == []


DIGESTS = """
import json
from inquitree_gym.trees import builtin_ids, load_tree
print(json.dumps({name: load_tree(name).digest for name in reversed(builtin_ids())}))
"""


@pytest.mark.e2e
@pytest.mark.parametrize("hash_seed", ["1", "4242"])
def test_digests_are_the_same_in_every_process_and_locale(hash_seed: str):
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "LC_ALL": "C", "PYTHONUTF8": "0"}
    run = subprocess.run([sys.executable, "-c", DIGESTS], env=environment, capture_output=True, text=True, check=True)
    here = {name: parse_tree(builtin_file(name).read_bytes()).digest for name in builtin_ids()}
    assert json.loads(run.stdout) == here
