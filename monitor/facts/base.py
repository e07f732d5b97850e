"""What every fact has in common."""

from __future__ import annotations

import msgspec


class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An immutable observation. A field that is None was not observed: it is never 0 and never "fine".

    Unknown fields are ignored on decoding, so a newer agent can talk to an older daemon.
    `gc=False` because facts are trees and never refer back to themselves: it spares the collector 10,000 objects.
    """
