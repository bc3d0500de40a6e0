"""Training of the reader: a small adapter on MiniLM by which proposals lie near the nodes that they mean."""
