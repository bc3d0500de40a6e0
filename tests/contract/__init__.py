"""Promises that hold for every kind of environment, each tested once and over all kinds."""
