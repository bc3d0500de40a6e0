"""Static models, which approximate MiniLM or the reader by a table: ``python -m research.static``."""
