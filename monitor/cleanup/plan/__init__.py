"""Decides what a cleanup run removes."""
