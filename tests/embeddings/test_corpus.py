"""Sentences of scientific English from installed packages."""

from __future__ import annotations

import pytest

from inquitree_gym.embeddings import static as prose
from inquitree_gym.embeddings.static import WORDS, scientific_sentences


def test_as_many_different_sentences_as_asked_for_the_same_ones_again():
    found = scientific_sentences(60)
    assert len(found) == len(set(found)) == 60
    assert scientific_sentences(20) == found[:20]
    assert scientific_sentences(0) == []


def test_they_are_sentences_of_plain_words():
    for sentence in scientific_sentences(60):
        assert sentence[0].isupper()
        assert sentence.endswith(".")
        assert len(sentence.split()) in WORDS
        assert not set(sentence) & set("=<>`*_/\\[]{}0123456789")


def test_no_file_crowds_out_the_others(monkeypatch: pytest.MonkeyPatch):
    many = scientific_sentences(60)
    monkeypatch.setattr(prose, "PER_FILE", 2)
    assert len(set(many) & set(scientific_sentences(60))) < 40


def test_when_the_files_are_spent_there_are_fewer(monkeypatch: pytest.MonkeyPatch):
    files = list(prose._files())[:3]
    monkeypatch.setattr(prose, "_files", lambda: iter(files))
    assert 0 < len(scientific_sentences(10_000)) <= 3 * prose.PER_FILE
