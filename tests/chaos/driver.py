"""Deals out the faults in an order that the seed decides, with troubles that begin and end in the midst of them."""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from tests.chaos.faults import FAULTS, IN_MEMORY, WITHOUT_API, Chance
from tests.chaos.ledger import REPORT, Trouble, Verdict
from tests.chaos.programs import TRACEBACK, Figures, grown
from tests.chaos.scene import NODES, Scene
from tests.chaos.troubles import BY_THE_API, KINDS, Open, begin, finish
from tests.support import wait_until

RECOVERY = 45.0  # seconds within which all has to be well after a fault, on a machine that others use too
WORD = 45.0  # seconds after that in which what began or ended meanwhile has to be told
GROUP = 120.0  # seconds in which the robot of a group, which takes 20 messages a minute, gets the last of them
LONG = {"agent killed": 30.0, "agent paused": 30.0, "network cut": 30.0, "bodies corrupted": 30.0,
        "API server restarted": 18.0, "daemon paused": 30.0, "mount hung": 18.0, "state full": 14.0}  # fmt: skip
SHORT = (5.0, 11.0)
POD_STARTS = 65.0  # seconds after which a pod that has begun keeps no image from being removed
MORE_THREADS, MORE_FILES = 6, 12  # that a process may have at the end: the page and the pools breathe


@dataclass(frozen=True)
class Step:
    """One fault that is over. `recovery` is how many seconds it took until all was well; None: it never was."""

    fault: str
    length: float
    trouble: str
    recovery: float | None


@dataclass
class Course:
    """All that was seen of a run. `errors` are what went wrong beside what was told."""

    seed: int
    seconds: float = 0.0
    steps: list[Step] = field(default_factory=list)
    verdict: Verdict = field(default_factory=Verdict)
    errors: list[str] = field(default_factory=list)
    troubles: Counter[str] = field(default_factory=Counter)
    images_removed: int = 0
    unplanned: list[str] = field(default_factory=list)
    in_memory: int = 0
    group_messages: int = 0

    @property
    def failures(self) -> list[str]:
        """Return everything that is not as it should be."""
        told = self.verdict
        kinds = {"lost": told.lost, "end not told": told.unended, "wrong": told.wrong, "told again": told.again}
        found = [f"{kind}: {each}" for kind, all_such in kinds.items() for each in all_such]
        found += [f"not well within {RECOVERY:.0f} s: {step.fault}" for step in self.steps if step.recovery is None]
        return [*found, *(f"deleted outside a plan: {each}" for each in self.unplanned), *self.errors]


def schedule(dice: random.Random) -> Iterator[tuple[str, float]]:
    """Yield faults and how long they last, for ever: each kind once in every round, and long in every second one."""
    for turn in range(1_000_000):
        names = sorted(FAULTS)
        dice.shuffle(names)
        for name in names:
            short = dice.uniform(*SHORT)
            yield name, LONG.get(name, short) if turn % 2 else short


class Driver:
    """Runs a scene from fault to fault."""

    def __init__(self, scene: Scene, seed: int, say: Callable[[str], None]) -> None:
        self._scene = scene
        self._dice = random.Random(seed)
        self._say = say
        self._open: list[Open] = []
        self._pod_at = time.monotonic()
        self._samples: dict[str, list[Figures]] = defaultdict(list)
        self.course = Course(seed)

    def run(self, seconds: float, rounds: int | None = None) -> Course:
        """Go on for so many seconds, or for so many rounds of all faults; then judge."""
        began = time.monotonic()
        self._scene.ledger.troubles.append(Trouble("images pile up", REPORT, {}, time.time(), must=False))
        for number, (name, length) in enumerate(schedule(self._dice)):
            if rounds is not None and number >= rounds * len(FAULTS):
                break
            if rounds is None and time.monotonic() - began >= seconds:
                break
            try:
                self._step(name, length)
            except (Exception, pytest.fail.Exception) as error:  # the next fault is to be seen too
                self.course.errors.append(f"{name}: {type(error).__name__}: {error}"[:1000])
                self._say(self.course.errors[-1])
        self._end()
        self.course.seconds = time.monotonic() - began
        return self.course

    def _step(self, name: str, length: float) -> None:
        """Let a fault happen: in its midst an old trouble ends and a new one begins. Then all has to be well again."""
        scene = self._scene
        above = scene.images.pile_up(may_cross=time.monotonic() - self._pod_at > POD_STARTS)
        early = self._dice.random() * 0.4 * length
        kind = self._kind(name, no_pods=above)
        if kind in BY_THE_API:
            self._pod_at = time.monotonic()
        began = time.time()
        with FAULTS[name](scene, Chance(length, self._dice)):
            time.sleep(early)
            ended = [each for each in self._open if not (name in WITHOUT_API and each.kind in BY_THE_API)]
            for each in ended:
                self._open.remove(each)
                finish(scene, each)
            opened = begin(scene, kind, self.course.troubles[kind])
            self.course.troubles[kind] += 1
            self._open.append(opened)
            if name == "state full":
                self._wait_told(opened, f"{kind} is told from memory")
            time.sleep(max(0.0, began + length - time.time()))
        recovery = self._recover(name)
        self.course.steps.append(Step(name, length, kind, recovery))
        self._wait_told(opened, f"{kind} is told after: {name}")
        wait_until(lambda: not scene.ledger.unended(), WORD, f"all ends are told after: {name}")
        self._look_around()
        self._say(f"{name} {length:.0f} s, {kind}, well after {recovery}")

    def _kind(self, fault: str, no_pods: bool) -> str:
        if (
            no_pods or fault in WITHOUT_API or fault == "state full"
        ):  # nothing can be asked of it; no time to ask for it
            return self._dice.choice(sorted(KINDS.keys() - BY_THE_API))
        return self._dice.choice(sorted(KINDS))

    def _recover(self, name: str) -> float | None:
        """Wait until all is well, and return how long that took."""
        began, why = time.monotonic(), None
        while time.monotonic() - began < RECOVERY:
            why = self._scene.page.unwell(NODES, self._scene.present)
            if why is None:
                return round(time.monotonic() - began, 1)
            time.sleep(0.25)
        self.course.errors.append(f"{name}: not well: {why}")
        self._say(self.course.errors[-1])
        return None

    def _wait_told(self, opened: Open, what: str) -> None:
        """Wait until it is told; what came so often that it flaps may be told as going on, which is nothing new."""
        ledger = self._scene.ledger
        wait_until(lambda: ledger.is_told(opened.trouble) or not ledger.is_asked_for(opened.trouble), WORD, what)

    def _look_around(self) -> None:
        """See what was deleted, and what the processes hold."""
        self.course.unplanned += self._scene.images.unplanned(self._scene.page)
        for program in self._scene.programs:
            self._samples[program.name].append(program.figures())

    def _end(self) -> None:
        """End all troubles, wait for the last words, and judge."""
        scene, course = self._scene, self.course
        for each in self._open:
            finish(scene, each)
        self._open = []
        self._recover("the end")
        deadline = time.monotonic() + GROUP
        while time.monotonic() < deadline and (scene.ledger.unended() or scene.page.unsent()):
            time.sleep(0.5)
        if left := scene.page.unsent():
            course.errors.append(f"{left:g} messages wait at the end")
        self._look_around()
        now = scene.lab.cluster.read_pod(scene.canary)  # raises if it is gone
        if now.metadata.uid != scene.canary.metadata.uid or now.status.phase != "Running":
            course.unplanned.append(f"the pod of canaries is {now.status.phase}")
        course.verdict = scene.ledger.judge()
        course.images_removed = scene.images.removed
        course.in_memory = scene.daemon.said().count(IN_MEMORY)
        course.group_messages = len(scene.group.taken)
        for program in scene.programs:
            more = grown(self._samples[program.name], MORE_THREADS, MORE_FILES)
            course.errors += [f"{program.name} has grown: {more}"] if more else []
            course.errors += [f"{program.name} raised: {each}" for each in tracebacks(program.said())]


def tracebacks(said: str) -> list[str]:
    """Given what a process said, return the line before and the last line of each traceback in it."""
    lines = said.splitlines()
    found = []
    for number, line in enumerate(lines):
        if TRACEBACK in line:
            rest = lines[number + 1 :]
            last = next((each for each in rest if not each.startswith((" ", "\t"))), "?")
            found.append(f"{lines[number - 1] if number else '?'} ... {last}"[:400])
    return found
