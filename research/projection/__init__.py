"""Labelled projections of the shipped papers, and the calibration of the judges of projections with them."""
