"""Base class and bounded types of facts."""

from __future__ import annotations

from typing import Annotated

import msgspec

from monitor.base.text import MAX_TEXT_CHARS

# Limits of numbers from agents: above any real value, and small enough for sums and products. A snapshot that exceeds
# them is rejected, so that one faulty agent cannot overflow cluster-wide sums. Device and inode numbers are only
# compared and may be any 64-bit number.
BoundedInt = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
BoundedFloat = Annotated[float, msgspec.Meta(ge=-1e20, le=1e20)]
# Limits of strings from outside. `monitor.base.bounded_json` cuts a text that is too long. An identifier is never cut,
# because it would be that of another object: one that is too long invalidates the object.
MAX_IDENTIFIER_CHARS = 256  # Kubernetes limits names to 253 characters
Identifier = Annotated[str, msgspec.Meta(max_length=MAX_IDENTIFIER_CHARS)]
BoundedText = Annotated[str, msgspec.Meta(max_length=MAX_TEXT_CHARS)]
# Maximum lengths: of lists whose items are shown and evaluated individually, and of all other lists.
SHORT_LIST = msgspec.Meta(max_length=256)
LONG_LIST = msgspec.Meta(max_length=50_000)


class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An immutable observation. None means not observed, never 0 or "fine".

    Unknown fields are ignored on decoding, so a newer agent can talk to an older daemon.
    `gc=False`: facts are trees without cycles, which spares the garbage collector 10,000 objects.
    """
