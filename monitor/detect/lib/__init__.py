"""Helpers shared by several rules."""
