"""English: the page where owners keep what is due for cleanup."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "keep.title": "Keep",
    "keep.owner": "Owner: {name}",
    "keep.due": "It will be cleaned up after {moment} unless you keep it or use it.",
    "keep.not-due": "It is no longer due for cleanup. There is nothing to do.",
    "keep.kept": "{name} keeps it until {until}.",
    "keep.kept-because": "{name} keeps it until {until}: {reason}",
    "keep.answered": "This link has been used. A later notice contains a new one.",
    "keep.for": "Keep it for",
    "keep.reason": "Reason (optional)",
    "keep.button": "Keep",
    "keep.once": "This link works once. Details and release: sign in on the cleanup page.",
    "keep.invalid": "This link is not valid",
    "keep.expired": "This link has expired",
    "keep.ask": "Use the link of the latest notice, or ask your administrator.",
}
