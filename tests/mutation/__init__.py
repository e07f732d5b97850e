"""Mutation tests of what decides: each part is changed in small ways, and its tests have to notice."""
