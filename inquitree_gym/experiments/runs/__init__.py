"""Studies of many episodes, and what plays them into the folder of a run: here, at once, or on Ray."""
