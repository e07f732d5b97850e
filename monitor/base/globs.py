"""Shell patterns in settings and requests: `*`, `?`, `[seq]`, `[!seq]`, case-sensitive.

Matching takes linear time: since Python 3.9 the expression behind a pattern does not backtrack into its stars.
`tests/security/test_patterns.py` verifies that.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable


def matches_glob(text: str, pattern: str) -> bool:
    """Whether a pattern matches the whole text."""
    return fnmatch.fnmatchcase(text, pattern)


def matches_any_glob(text: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns matches the whole text."""
    return any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns)


def compile_file_glob(pattern: str) -> re.Pattern[str]:
    """Pattern for file names, as in a shell: hidden names match only if the pattern begins with a dot."""
    return re.compile(("" if pattern.startswith(".") else r"(?!\.)") + fnmatch.translate(pattern))
