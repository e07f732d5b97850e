"""Conventions of the source tree, checked: units in constants, unique class names, honest docstrings, idiomatic prose."""
