"""Commands inside a sentence of advice, so that they can be shown as such and copied."""

from __future__ import annotations

import re

from monitor.alert.message.document import Span, SpanStyle

# These are never anything but commands.
_PROGRAMS = (
    "kubectl|docker|docker-compose|crictl|nvidia-smi|ssh|systemctl|journalctl|getent|curl|gpuwarden|iostat|nfsiostat|"
    "iotop|dmesg|umount|fuser|lspci|ipmitool|vcctl|showmount|truncate|exportfs|torchrun"
)
# These are words as well: they are commands where an option or a path follows.
_WORDS = "mount|last|kill|cat|grep|ps|ls|du|df"
_FULL_WIDTH = "\u3000-\u303f\u3400-\u9fff\uff00-\uffef"
_ENDS = rf"[{_FULL_WIDTH}]|[;,:] |\.(?: |$)| \(|\)| (?:and|or|show|shows|is|does|on|the|to|then) |$"
_COMMAND = re.compile(
    rf"(?<![\w./-])(?:(?:{_PROGRAMS})(?= [^\s{_FULL_WIDTH}])|(?:{_WORDS})(?= [-/])).*?(?=\s*(?:{_ENDS}))", re.ASCII
)


def with_commands(text: str) -> tuple[Span, ...]:
    """Given a sentence, return it as spans in which the commands are code."""
    spans: list[Span] = []
    end = 0
    for found in _COMMAND.finditer(text):
        spans += [Span(text[end : found.start()]), Span(found[0], SpanStyle.CODE)]
        end = found.end()
    return tuple(span for span in (*spans, Span(text[end:])) if span.text)
