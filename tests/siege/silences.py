"""Silences with hostile patterns: some must be refused, the others must cost little."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from tests.security.flood import Address
from tests.security.test_patterns import EXPENSIVE, HOSTILE, new_silence
from tests.support.local_token import local_headers

WORST = 40  # silences with the most expensive patterns that are accepted
LABELS = ("mount", "gpu", "pod", "node")
REQUEST_SECONDS = 30.0


def worst_patterns() -> Iterator[str]:
    """Valid patterns that keep an engine busy until the last character, and match nothing."""
    for number in range(WORST):
        yield f"(.*a.*b?){{100}}x{number}"


def hostile_silences() -> Iterator[tuple[dict[str, object], int]]:
    """Bodies of requests, and the expected status of their responses."""
    yield new_silence(f"node=~{HOSTILE}"), 201  # RE2 matches it in linear time
    for matchers, duration, _ in EXPENSIVE:
        yield new_silence(*matchers, duration=duration), 400
    for number, pattern in enumerate(worst_patterns()):
        yield new_silence(f"{LABELS[number % len(LABELS)]}=~{pattern}"), 201


def post_silences(daemon: Address, state: Path) -> tuple[int, Sequence[str]]:
    """Post all silences; return how many were stored, and what was answered otherwise than expected."""
    headers, unexpected, stored = local_headers(state), [], 0
    for body, expected in hostile_silences():
        status, text = _post(daemon, headers, body)
        stored += status == 201
        if status != expected:
            unexpected.append(f"{str(body)[:100]}: {status} instead of {expected}: {text[:200]}")
    return stored, unexpected


def _post(daemon: Address, headers: Mapping[str, str], body: object) -> tuple[int, str]:
    connection = http.client.HTTPConnection(*daemon, timeout=REQUEST_SECONDS)
    with closing(connection):
        connection.request("POST", "/v1/silences", json.dumps(body), dict(headers))
        response = connection.getresponse()
        return response.status, response.read().decode(errors="replace")
