"""Client of the environment; actions and observations are dictionaries with a ``text``."""

from openenv.core.generic_client import GenericEnvClient

EpisodeClient = GenericEnvClient
