"""The agent's process: `gpuwarden agent` replaces itself by this, with the settings in an inherited file descriptor."""

from __future__ import annotations

import sys

import msgspec

from monitor.agent.settings import AgentSettings
from monitor.base import logs


def read_settings(descriptor: int) -> AgentSettings:
    """Given an open file descriptor, return the settings in it, and close it. Raise OSError or msgspec.MsgspecError."""
    with open(descriptor, "rb") as file:
        return msgspec.json.decode(file.read(), type=AgentSettings)


def run(arguments: list[str]) -> int:
    """Given `--settings-fd N`, run the agent until it is told to stop, and return the exit code."""
    match arguments:
        case ["--settings-fd", number] if number.isdecimal():
            settings = read_settings(int(number))
        case _:
            sys.stderr.write("gpuwarden: this module is started by the command `gpuwarden agent`\n")
            return 2
    logs.setup(settings.log_level)
    from monitor.agent.main import main  # only now: what it imports may want to log

    return main(settings)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
