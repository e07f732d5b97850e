"""Shell commands inside advice, so that messages show them as code."""

from __future__ import annotations

import re

from monitor.alert.message.document import Span, SpanStyle

# Always commands.
_PROGRAMS = (
    "kubectl|docker|docker-compose|crictl|nvidia-smi|ssh|systemctl|journalctl|getent|curl|gpuwarden|iostat|nfsiostat|"
    "iotop|dmesg|umount|fuser|lspci|ipmitool|vcctl|showmount|truncate|exportfs|torchrun|dcgmi|skopeo"
)
# Also English words: commands only if an option or a path follows.
_WORDS = "mount|last|kill|cat|grep|ps|ls|du|df"
_FULL_WIDTH = "\u3000-\u303f\u3400-\u9fff\uff00-\uffef"
_ENDS = rf"[{_FULL_WIDTH}]|[;,:] |\.(?: |$)| \(|\)| (?:and|or|shows|is|does|on|the|to|then) | show (?!-)|$"
_COMMAND = re.compile(
    rf"(?<![\w./-])(?:(?:{_PROGRAMS})(?= [^\s{_FULL_WIDTH}])|(?:{_WORDS})(?= [-/])).*?(?=\s*(?:{_ENDS}))", re.ASCII
)


def with_commands(text: str) -> tuple[Span, ...]:
    """Sentence as spans, with its commands as code."""
    spans: list[Span] = []
    end = 0
    for match in _COMMAND.finditer(text):
        spans += [Span(text[end : match.start()]), Span(match[0], SpanStyle.CODE)]
        end = match.end()
    return tuple(span for span in (*spans, Span(text[end:])) if span.text)
