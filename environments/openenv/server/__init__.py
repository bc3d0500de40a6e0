"""OpenEnv server of inquitree."""
