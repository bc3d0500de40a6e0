"""The inquiries of many environments as NumPy arrays."""
