"""What is left over in English in Chinese output, apart from names and technical terms."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Names of programs, units, codes of rules and of Kubernetes, names that the test data contains, and messages of others.
TECHNICAL = frozenset(
    re.findall(
        r"\S+",
        """
        GPU GPUs Pod CPU XID ID KiB MiB GiB TiB UTC agent daemon gpuwarden why Linux inode shm NVIDIA SXM kubelet
        kubernetes agents nodes pods gpu images probes node-down disk-full system runtime nas docker none tcp
        finalizer dmesg DNS wecom CST
        drain-and-reset sw-thermal power-cap open old new li wang
        Stale file handle is lost no answer connection refused OSError
        """,
    )
)
# Commands, and names of nodes, pods, images, mounts and settings.
NAMES = re.compile(r"gpuwarden(?: [a-z-]+)+|[\w.:@/-]*[\d/@][\w.:@/-]*|[a-z]+(?:\.[a-z]+)+")
WORD = re.compile(r"[A-Za-z][A-Za-z-]+")


def english_in(text: str, names: Iterable[str] = ()) -> list[str]:
    """English words of a Chinese text, apart from technical ones and these names."""
    assert text.strip()
    for name in names:
        text = text.replace(name, " ")
    return sorted(set(WORD.findall(NAMES.sub(" ", text))) - TECHNICAL)
