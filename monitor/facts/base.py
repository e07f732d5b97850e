"""What every fact has in common."""

from __future__ import annotations

from typing import Annotated

import msgspec

# What an agent may say: more than any node has, and little enough to be added up, multiplied and divided. A snapshot
# that says more is none; were it believed, one liar's sum would be too large for everybody. Devices and inodes, which
# are only compared, may be any number of 64 bits.
BoundedInt = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
BoundedFloat = Annotated[float, msgspec.Meta(ge=-1e20, le=1e20)]
# How many of something a node may have: of what each is shown and judged by itself, and of all else.
SHORT_LIST = msgspec.Meta(max_length=256)
LONG_LIST = msgspec.Meta(max_length=50_000)


class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An immutable observation. A field that is None was not observed: it is never 0 and never "fine".

    Unknown fields are ignored on decoding, so a newer agent can talk to an older daemon.
    `gc=False` because facts are trees and never refer back to themselves: it spares the collector 10,000 objects.
    """
