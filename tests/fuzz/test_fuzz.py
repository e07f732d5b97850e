"""Whatever comes from outside: a parser returns a value or its one error, in bounded time, and its labels are bounded.

Here each target gets what is kept and a few hundred new inputs; `make fuzz` goes on for as long as it is told.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from random import Random

import pytest

from tests.fuzz.mutate import mutated
from tests.fuzz.targets import BY_NAME, CORPUS, seeds

SECONDS = 0.4  # for each target
MAX_INPUT_SECONDS = 30.0  # a longer run counts as a hang


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("name", BY_NAME)
def test_what_is_kept(name: str) -> None:
    """Recorded inputs, and all that ever broke it."""
    for path in seeds(name):
        began = time.monotonic()
        BY_NAME[name](path.read_bytes())
        assert time.monotonic() - began < MAX_INPUT_SECONDS, path.name


@pytest.mark.parametrize("name", BY_NAME)
def test_what_is_nearly_right(name: str) -> None:
    target, kept = BY_NAME[name], [path.read_bytes() for path in seeds(name)]
    rng, tried = Random(name), 0  # the same inputs each time: what is new is looked for by make fuzz
    until = time.monotonic() + SECONDS
    while time.monotonic() < until or tried < 20:
        data = mutated(rng, kept)
        began = time.monotonic()
        try:
            target(data)
        except Exception as error:
            error.add_note(f"input: {data[:2000]!r}")
            raise
        assert time.monotonic() - began < MAX_INPUT_SECONDS, data[:2000]
        tried += 1


def test_every_target_has_a_corpus_and_nothing_else() -> None:
    assert {path.name for path in CORPUS.iterdir()} == BY_NAME.keys()
    assert all(seeds(name) for name in BY_NAME)
