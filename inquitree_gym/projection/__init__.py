"""Projections: an agent says what it expects a study to find, while the study is disclosed level by level."""
