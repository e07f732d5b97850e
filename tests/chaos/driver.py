"""Schedules faults in an order derived from the seed, with incidents that start and end during them."""

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

RECOVERY = 45.0  # seconds from the end of a fault to full recovery, on a shared machine
WORD = 45.0  # seconds after recovery until incidents of the meantime must be reported
GROUP = 120.0  # seconds until the group bot, limited to 20 messages a minute, has received the last message
LONG = {"agent killed": 30.0, "agent paused": 30.0, "network cut": 30.0, "bodies corrupted": 30.0,
        "API server restarted": 18.0, "daemon paused": 30.0, "mount hung": 18.0, "state full": 14.0}  # fmt: skip
SHORT = (5.0, 11.0)
POD_STARTS = 65.0  # seconds during which a new pod prevents image removal on its node
MORE_THREADS, MORE_FILES = 6, 12  # tolerance for threads and connections of a process at the end


@dataclass(frozen=True)
class Step:
    """One completed fault. `recovery` is in seconds; None if the product did not recover."""

    fault: str
    length: float
    trouble: str
    recovery: float | None


@dataclass
class Course:
    """Everything observed in a run. `errors` are failures other than wrong or missing notifications."""

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
        """All failures of the run."""
        told = self.verdict
        kinds = {"lost": told.lost, "end not told": told.unended, "wrong": told.wrong, "told again": told.again}
        found = [f"{kind}: {each}" for kind, all_such in kinds.items() for each in all_such]
        found += [f"not well within {RECOVERY:.0f} s: {step.fault}" for step in self.steps if step.recovery is None]
        return [*found, *(f"deleted outside a plan: {each}" for each in self.unplanned), *self.errors]


def schedule(dice: random.Random) -> Iterator[tuple[str, float]]:
    """Endless sequence of faults and durations: each kind once per round, long ones in every second round."""
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
        """Run for `seconds`, or for a number of rounds of all faults; then judge."""
        began = time.monotonic()
        self._scene.ledger.troubles.append(Trouble("images pile up", REPORT, {}, time.time(), must=False))
        for number, (name, length) in enumerate(schedule(self._dice)):
            if rounds is not None and number >= rounds * len(FAULTS):
                break
            if rounds is None and time.monotonic() - began >= seconds:
                break
            try:
                self._step(name, length)
            except (Exception, pytest.fail.Exception) as error:  # the next fault must be visible too
                self.course.errors.append(f"{name}: {type(error).__name__}: {error}"[:1000])
                self._say(self.course.errors[-1])
        self._end()
        self.course.seconds = time.monotonic() - began
        return self.course

    def _step(self, name: str, length: float) -> None:
        """Inject a fault; while it lasts, one incident ends and another starts. Then wait for recovery."""
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
        if no_pods or fault in WITHOUT_API or fault == "state full":  # unreachable, or too short to notice
            return self._dice.choice(sorted(KINDS.keys() - BY_THE_API))
        return self._dice.choice(sorted(KINDS))

    def _recover(self, name: str) -> float | None:
        """Seconds until full recovery."""
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
        """Wait until the incident is reported; a flapping alert may count as continuing."""
        ledger = self._scene.ledger
        wait_until(lambda: ledger.is_told(opened.trouble) or not ledger.is_asked_for(opened.trouble), WORD, what)

    def _look_around(self) -> None:
        """Check deleted objects and the resources of the processes."""
        self.course.unplanned += self._scene.images.unplanned(self._scene.page)
        for program in self._scene.programs:
            self._samples[program.name].append(program.figures())

    def _end(self) -> None:
        """End all incidents, wait for the last notifications, and judge."""
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
    """Line before and last line of each traceback in a log."""
    lines = said.splitlines()
    found = []
    for number, line in enumerate(lines):
        if TRACEBACK in line:
            rest = lines[number + 1 :]
            last = next((each for each in rest if not each.startswith((" ", "\t"))), "?")
            found.append(f"{lines[number - 1] if number else '?'} ... {last}"[:400])
    return found
