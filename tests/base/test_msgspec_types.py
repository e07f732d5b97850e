"""msgspec types are warmed up before threads decode them; runs in a subprocess because the failure is a crash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# Many Struct types, each first decoded by four threads at once.
RACE = """
import sys, threading, msgspec
from typing import Optional
from monitor.base.msgspec_types import warm_up_msgspec
sys.setswitchinterval(1e-6)
class Inner(msgspec.Struct):
    a: int = 0
kinds = [
    msgspec.defstruct(f"Kind{n}", [(f"f{i}", Optional[Inner], None) for i in range(8)], module=__name__)
    for n in range(300)
]
if sys.argv[1] == "known":
    assert warm_up_msgspec() >= len(kinds)
for kind in kinds:
    gate = threading.Barrier(4)
    def work():
        gate.wait()
        msgspec.json.decode(b'{"f0": {"a": 1}, "f7": {"a": 2}}', type=kind)
    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
"""
# The process may decode types of modules that it has not imported when its threads start.
LATE = """
import importlib, pkgutil
import msgspec, {start}
from monitor.base.msgspec_types import struct_types
early = set(struct_types(msgspec.Struct))
for found in pkgutil.walk_packages(monitor.__path__, "monitor."):
    if found.name.startswith({parts!r}) and not found.name.endswith("__main__"):
        importlib.import_module(found.name)
print(*sorted({{each.__module__ for each in set(struct_types(msgspec.Struct)) - early}}))
"""
DAEMON = (
    "monitor.facts",
    "monitor.cluster",
    "monitor.alert",
    "monitor.cleanup",
    "monitor.report",
    "monitor.web",
    "monitor.probes",
)
AGENT = ("monitor.agent",)


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_threads_may_decode_what_is_known() -> None:
    done = run(RACE, "known")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("start", "parts"), [("monitor.daemon.main", DAEMON), ("monitor.agent.main", AGENT)])
def test_what_is_imported_later_makes_its_types_known_itself(start: str, parts: tuple[str, ...]) -> None:
    done = run(LATE.format(start=start, parts=parts))
    assert done.stderr == ""
    late = [name for name in done.stdout.split() if name.startswith(parts)]
    assert late, "nothing is imported late: this test looks at nothing"
    sources = {name: Path(name.replace(".", "/") + ".py").read_text(encoding="utf-8") for name in late}
    assert [name for name, text in sources.items() if not text.endswith("\nwarm_up_msgspec(__name__)\n")] == []
