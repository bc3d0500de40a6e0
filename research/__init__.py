"""Tools of this repository that are not part of the wheel: validity report, calibration, training of embedders."""
