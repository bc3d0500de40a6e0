"""Measurements that only this repository needs; not part of the wheel."""
