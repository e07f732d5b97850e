"""Chinese."""

from __future__ import annotations

from monitor.words.zh import crashes, images, nodes, queues, running, starting

WORDS = queues.WORDS | nodes.WORDS | images.WORDS | starting.WORDS | crashes.WORDS | running.WORDS
