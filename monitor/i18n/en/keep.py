"""English: the page where owners keep what is due for cleanup."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "keep.title": "Keep",
    "keep.owner": "Owner: {name}",
    "keep.due": "It will be cleaned up after {moment} unless you keep it or use it.",
    "keep.question": "Keep {name}?",
    "keep.nothing": "Nothing to do",
    "keep.not-due": "{name} is no longer due for cleanup.",
    "keep.kept": "{name} keeps it until {until}.",
    "keep.kept-because": "{name} keeps it until {until}: {reason}",
    "keep.answered": "This link has been used. A later notice contains a new one.",
    "keep.for": "Keep it for",
    "keep.reason": "Reason (optional)",
    "keep.button": "Keep",
    "keep.once": "This link works once.",
    "keep.sign-in": "Sign in to see details or to release it now.",
    "keep.invalid": "This link is not valid",
    "keep.expired": "This link has expired",
    "keep.ask": "Use the link of the latest notice, or ask your administrator.",
}
