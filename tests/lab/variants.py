"""The labs to choose from."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tests.lab.errors import LabError
from tests.lab.modern.variant import Modern
from tests.lab.v1_20.variant import Docker120
from tests.lab.variant import Variant

VARIANTS: dict[str, Variant] = {variant.name: variant for variant in (Modern(), Docker120())}


def chosen(environment: Mapping[str, str] = os.environ) -> Variant:
    """The variant that the variable LAB names, by default the first one; LabError if there is no such variant."""
    return named(environment.get("LAB") or next(iter(VARIANTS)))


def named(name: str) -> Variant:
    """The variant of this name; LabError if there is none."""
    if name not in VARIANTS:
        raise LabError(f"LAB={name} is unknown; there are {', '.join(VARIANTS)}")
    return VARIANTS[name]
