"""For any external input, a parser returns a value or its documented error, in bounded time and with bounded labels.

Each target runs its corpus and a few hundred new inputs here; `make fuzz` runs for longer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from random import Random

import pytest

from tests.fuzz.mutate import mutated
from tests.fuzz.targets import BY_NAME, CORPUS, seeds

SECONDS = 0.4  # per target
MAX_INPUT_SECONDS = 30.0  # a longer run counts as a hang


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("name", BY_NAME)
def test_what_is_kept(name: str) -> None:
    """Recorded inputs and all that ever broke the target."""
    for path in seeds(name):
        began = time.monotonic()
        BY_NAME[name](path.read_bytes())
        assert time.monotonic() - began < MAX_INPUT_SECONDS, path.name


@pytest.mark.parametrize("name", BY_NAME)
def test_what_is_nearly_right(name: str) -> None:
    target, kept = BY_NAME[name], [path.read_bytes() for path in seeds(name)]
    rng, tried = Random(name), 0  # deterministic: make fuzz searches for new inputs
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
