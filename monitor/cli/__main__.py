"""Entry point of `python -m monitor.cli`."""

from __future__ import annotations

from monitor.cli.main import main

main()
