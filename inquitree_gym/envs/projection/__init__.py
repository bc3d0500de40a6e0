"""Environments of projections: an agent says what a study will find, while the study is disclosed step by step."""
