"""Mutation tests of decision code: each module is mutated, and its tests must fail."""
