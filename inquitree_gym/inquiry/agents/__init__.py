"""Agents of inquiries that ask no model."""
