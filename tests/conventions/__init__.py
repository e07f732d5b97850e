"""Conventions of the source tree: units in constants, unique class names, honest docstrings, idiomatic prose."""
