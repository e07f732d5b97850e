"""Cause of a pull that fails while a layer is unpacked or stored on the node."""

from __future__ import annotations

import re
from collections.abc import Sequence

from monitor.explain.error_chain import pull_phrases as phrases
from monitor.explain.error_chain.causes import PullFailureCause as P
from monitor.explain.error_chain.parse import Clause
from monitor.explain.error_chain.wording import Wording, find, says

# Clauses that name an operation say nothing of why it failed.
_OPERATION = re.compile(
    r"failed to (?:extract layer|register layer|prepare|unpack|pull)|apply layer error|mount callback failed|"
    r"initializing source|copying|writing blob|adding layer|committing"
)
_MOUNT = re.compile(r"failed to (?:un)?mount |failed to (?:un)?mount$|mount source$")
# A system call on a path within the layer that is unpacked.
_IN_LAYER = re.compile(r"\w+ \S*(?:/containerd-mount\d+/|/snapshots/\d+/fs/)\S")
# What is unpacked is on the node already: a stream that ends early there is not the connection.
_UNPACKS = re.compile(
    r"extract|register|apply|unpack|untar|\btar\b|archive|gzip|decompress|flate|zstd|processing|adding layer|gunzip"
)
# The programs that unpack layers may be missing or refuse the format.
_NO_PROGRAM = ("executable file", "unsupported", "not supported")
# System calls on what a layer contains. Of other files these errors do not tell whether the image is at fault.
_FILE_OF_LAYER = re.compile(
    r"lchown|lsetxattr|setxattr|mknod|chown|chmod|symlink|link |archive|untar|\btar\b|applylayer|"
    r"apply layer|extract|register layer|unpack|adding layer|creating file|whiteout"
)
# What the kernel refuses is the image's fault only if it concerns one of its files.
_REFUSED_FILE = re.compile(r"chown|setxattr|mknod|chmod|symlink|link |creating file|whiteout|extract layer")
_DOUBTFUL = ("operation not permitted", "invalid argument", "no such device or address")
_NOISE = ("unknown", "unavailable", "failed precondition", "not implemented", "canceled", "output", "")


def of_store(said: Sequence[Clause]) -> P:
    """The cause by the innermost clause that states one; the clause before it says what the node was doing."""
    table = phrases.STORE_MOUNT if any(_MOUNT.match(clause.words) for clause in said) else phrases.STORE
    cause, number = _innermost(said, table)
    statement = said[number].words
    if cause is P.CORRUPT_LAYER:
        if says(": ".join([clause.words for clause in said[number:]]), _NO_PROGRAM):
            return P.UNKNOWN
        unpacks = "unexpected eof" not in statement or any(_UNPACKS.search(clause.words) for clause in said)
        return cause if unpacks else P.CONNECTION_BROKEN
    if cause is P.BAD_IMAGE and says(statement, _DOUBTFUL):
        proof = _REFUSED_FILE if "not permitted" in statement else _FILE_OF_LAYER
        return cause if any(proof.search(clause.low) for clause in said) else P.UNKNOWN
    if cause is P.NODE_STORE and says(statement, _NO_PROGRAM):
        return P.UNKNOWN
    if cause is P.NODE_STORE and number and _IN_LAYER.match(said[number - 1].low):
        return P.UNKNOWN if "not empty" in said[number].words else P.BAD_IMAGE
    return cause


def _innermost(clauses: Sequence[Clause], table: Wording[P]) -> tuple[P, int]:
    """The cause by the innermost clause that states one, and the number of that clause."""
    for number in range(len(clauses) - 1, -1, -1):
        words = clauses[number].words
        stated = words not in _NOISE and not _OPERATION.match(words)
        if stated and (cause := find(words, table)) is not None:
            return cause, number
    return P.UNKNOWN, 0
