"""Fuzz the targets for a number of minutes: `python -m tests.fuzz MINUTES [TARGET...]`.

Inputs that break a target are added to its corpus. With atheris installed fuzzing is coverage-guided, otherwise inputs
are mutated randomly.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import logging
import os
import subprocess
import sys
import tempfile
import time
from random import Random
from typing import Any

WITH_ATHERIS = importlib.util.find_spec("atheris") is not None
MAX_INPUT_SECONDS = 30  # a longer run counts as a hang


def main(arguments: list[str]) -> int:
    """Divide the time among the targets, each in its own process."""
    if arguments[:1] == ["--one"]:
        return run_one(arguments[1], float(arguments[2]))
    from tests.fuzz.targets import BY_NAME

    minutes = float(arguments[0]) if arguments else 5.0
    names = arguments[1:] or list(BY_NAME)
    if unknown := set(names) - BY_NAME.keys():
        print(f"no such target: {', '.join(sorted(unknown))}; there are {', '.join(BY_NAME)}", file=sys.stderr)
        return 2
    seconds = minutes * 60 / len(names)
    print(
        f"{len(names)} targets, {seconds:.0f} s each, {'atheris' if WITH_ATHERIS else 'inputs by chance'}", flush=True
    )
    broken = [
        name for name in names if subprocess.call([sys.executable, "-m", "tests.fuzz", "--one", name, str(seconds)])
    ]
    print(f"broken: {', '.join(broken)}" if broken else "nothing broke")
    return 1 if broken else 0


def run_one(name: str, seconds: float) -> int:
    """Fuzz one target; 1 if an input broke it."""
    logging.disable(logging.CRITICAL)
    return by_coverage(name, seconds) if WITH_ATHERIS else by_chance(name, seconds)


def by_chance(name: str, seconds: float) -> int:
    from tests.fuzz.mutate import mutated
    from tests.fuzz.targets import BY_NAME, seeds

    kept, rng, tried = [path.read_bytes() for path in seeds(name)], Random(), 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        data, tried = mutated(rng, kept), tried + 1
        began = time.monotonic()
        try:
            BY_NAME[name](data)
            if time.monotonic() - began > MAX_INPUT_SECONDS:
                raise TimeoutError(f"{time.monotonic() - began:.0f} s")
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}: {_keep(name, data)}", flush=True)
            return 1
    print(f"{name}: {tried} inputs", flush=True)
    return 0


def by_coverage(name: str, seconds: float) -> int:
    atheris: Any = importlib.import_module("atheris")  # installed only for make fuzz
    with atheris.instrument_imports(include=["monitor"]):
        from tests.fuzz.targets import BY_NAME, CORPUS

    def feed(data: bytes) -> None:
        try:
            BY_NAME[name](data)
        except BaseException:
            print(f"{name}: {_keep(name, data)}", flush=True)
            raise

    with tempfile.TemporaryDirectory() as new:
        child = os.fork()  # atheris exits its process
        if child == 0:
            options = [
                f"-max_total_time={seconds:.0f}",
                f"-timeout={MAX_INPUT_SECONDS}",
                "-rss_limit_mb=1500",
                "-verbosity=0",
            ]
            atheris.Setup([name, *options, f"-artifact_prefix={new}/", new, str(CORPUS / name)], feed)
            atheris.Fuzz()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(f"{name}: {len(os.listdir(new))} inputs reached something new", flush=True)
    return int(status != 0)


def _keep(name: str, data: bytes) -> str:
    from tests.fuzz.targets import CORPUS

    path = CORPUS / name / f"found-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    return str(path.relative_to(CORPUS.parent.parent.parent))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
