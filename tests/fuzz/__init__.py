"""Fuzzing of every parser of external input; see targets.py."""
