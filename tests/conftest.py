"""Settings of all tests."""

from __future__ import annotations

import gc
import signal
from collections.abc import Generator

import pytest
from hypothesis import settings

# How long an example takes depends on what else the machine does: no test fails for that.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")

# A shell that runs the tests in the background ignores SIGINT, which the programs they start would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Directories whose files take longest: they start processes. Workers get whole files in the order of collection.
SLOW_FIRST = ("cli", "daemon", "security", "web", "doctor", "deploy", "agent", "sim", "scorecard")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, None, None]:
    """Exempt the million objects of modules and tests from garbage collection: some tests collect often."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run slow files first: at the end no worker waits for another."""
    items.sort(key=lambda item: SLOW_FIRST.index(part) if (part := _directory(item)) in SLOW_FIRST else len(SLOW_FIRST))


def _directory(item: pytest.Item) -> str:
    """Directory below tests/ of an item."""
    parts = item.path.relative_to(item.config.rootpath / "tests").parts
    return parts[0]
