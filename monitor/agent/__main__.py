"""Entry point of the agent's process: `gpuwarden agent` execs it, with the settings in an inherited file descriptor."""

from __future__ import annotations

import sys

import msgspec

from monitor.agent.settings import AgentSettings
from monitor.base import logs


def read_settings(descriptor: int) -> AgentSettings:
    """Settings read from an open file descriptor, which is closed. Raise OSError or msgspec.MsgspecError."""
    with open(descriptor, "rb") as file:
        return msgspec.json.decode(file.read(), type=AgentSettings)


def run(arguments: list[str]) -> int:
    """Run the agent with `--settings-fd N` until it is stopped by a signal, and return the exit code."""
    match arguments:
        case ["--settings-fd", number] if number.isdecimal():
            settings = read_settings(int(number))
        case _:
            sys.stderr.write("gpuwarden: this module is started by the command `gpuwarden agent`\n")
            return 2
    logs.setup(settings.log_level)
    from monitor.agent.main import main  # after logs.setup: imported modules may log

    return main(settings)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
