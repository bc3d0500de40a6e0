"""Models asked outside the loop: of single results, and of the topic alone."""
