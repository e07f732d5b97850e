"""Changes in the cluster of the soak test: pods come, fail, recover and go; nodes become unhealthy; the server fails.

Every beat changes one pod: a due step of a lifecycle, otherwise a new pod or a small change of an existing one. So the
rate is constant, and so is the number of pods once creations and deletions balance. Events expire after a minute
instead of an hour, as otherwise their number would grow throughout the test.
"""

from __future__ import annotations

import heapq
import itertools
import json
import random
import time
from collections.abc import Callable, Iterator

from bench.cluster_data import GPUS
from monitor.sim.objects import Object
from tests.soak import pods
from tests.soak.agents import Agents
from tests.soak.api import Api, Forgetful

CALM = 10  # nodes with nothing but canaries
BIRTHS = 0.2  # of beats without a due step
LIVES = (20.0, 60.0)  # seconds
PULLS, CRASHES = 0.05, 0.02  # of created pods
EVENTS_KEPT = 60.0
CANARY_EVERY, CANARY_LIVES = 10.0, 60.0
# Other changes by name: interval and duration in seconds.
ILL, RESTART, SILENT, ZOMBIE = (3.0, (20.0, 60.0)), (5.0, (3.0, 8.0)), (20.0, (130.0, 200.0)), (10.0, (70.0, 120.0))
DROP_EVERY, EXPIRE_EVERY = 15.0, 120.0

Act = Callable[[], None]


class Life:
    """Changes objects and agents. `tell` receives a line whenever a canary fails."""

    def __init__(
        self, objects: Forgetful, agents: Agents, api: Api, chance: random.Random, tell: Callable[[str], None]
    ) -> None:
        self._objects = objects
        self._agents = agents
        self._api = api
        self._chance = chance
        self._tell = tell
        self._numbers = itertools.count(1)
        self._changes: list[tuple[float, int, Act]] = []  # steps of pods, executed at beats
        self._others: list[tuple[float, int, Act]] = []
        everybody = objects.items("pods")
        plain = [pod for pod in everybody if pod["status"]["phase"] == "Running"]
        self._computing = [pod["metadata"]["uid"] for pod in plain if _cards(pod)]
        self._still = [pod["metadata"]["uid"] for pod in plain if not _is_agent(pod)]
        self._mould = [pod for pod in plain if not _cards(pod) and not _is_agent(pod)]
        self._canaries = [pod for pod in self._mould if _node(pod) < CALM]
        self._restless = list(agents.addresses[CALM:])

    def begin(self) -> None:
        """Start the changes other than those of pods."""
        agents = self._agents
        self._repeat(CANARY_EVERY, self._canary)
        self._repeat(ILL[0], lambda: self._for_a_while(agents.ill, ILL[1]))
        self._repeat(RESTART[0], lambda: self._for_a_while(agents.away, RESTART[1]))
        self._repeat(SILENT[0], lambda: self._for_a_while(self._chance.choice((agents.away, agents.mute)), SILENT[1]))
        self._repeat(ZOMBIE[0], self._zombie)
        self._repeat(DROP_EVERY, lambda: self._api.drop_a_watch(self._chance))
        self._repeat(EXPIRE_EVERY, self._objects.forget)

    def tick(self) -> None:
        """Change one pod and execute other due steps."""
        for act in _due(self._others, many=True):
            act()
        change = next(_due(self._changes, many=False), None)
        if change is not None:
            change()
        elif self._chance.random() < BIRTHS:
            self._birth()
        else:
            pod = self._objects.get("pods", self._chance.choice(self._still))
            self._put(pods.touched(pod, self._chance.random() < 0.5, time.time()))

    # Pods

    def _birth(self) -> None:
        pod = pods.another(self._chance.choice(self._mould), next(self._numbers), time.time())
        self._put(pod)
        self._event(pod, "Pulling", f'Pulling image "{pods.image_of(pod)}"')
        kind = self._chance.random()
        if kind < PULLS:
            self._later(1.0, lambda: self._fail_to_pull(pod))
            started = self._chance.uniform(15.0, 45.0)
        elif kind < PULLS + CRASHES:
            self._later(1.0, lambda: self._put(pods.waiting(pod, "CrashLoopBackOff", "back-off 20s restarting", 3)))
            started = self._chance.uniform(15.0, 45.0)
        else:
            started = self._chance.uniform(1.0, 4.0)
        self._later(started, lambda: self._start(pod))
        self._end(pod, started + self._chance.uniform(*LIVES))

    def _start(self, pod: Object) -> None:
        self._event(pod, "Pulled", f'Successfully pulled image "{pods.image_of(pod)}"')
        self._put(pods.running(pod, time.time()))

    def _end(self, pod: Object, seconds: float) -> None:
        if self._chance.random() < 0.5:
            self._later(seconds, lambda: self._put(pods.finished(pod, time.time())))
        else:
            self._later(seconds, lambda: self._put(pods.terminating(pods.running(pod, time.time()), time.time())))
        self._later(seconds + self._chance.uniform(2.0, 10.0), lambda: self._remove(pod))

    def _fail_to_pull(self, pod: Object) -> None:
        image = pods.image_of(pod)
        why = pods.MISSING.format(image=image)
        self._event(pod, "Failed", f'Failed to pull image "{image}": rpc error: code = Unknown desc = {why}')
        self._put(pods.waiting(pod, "ErrImagePull", f"rpc error: code = Unknown desc = {why}"))

    def _canary(self) -> None:
        """Create a pod whose pull soon fails, and report when."""
        number = next(self._numbers)
        own = {"namespace": pods.CANARIES, "name": f"{pods.CANARIES}-{number}"}
        made = pods.another(self._chance.choice(self._canaries), number, time.time(), **own)
        pod = pods.with_image(made, f"{pods.CANARIES}.lab/soak/image:{number}")
        self._put(pod)
        seconds = self._chance.uniform(1.0, 5.0)
        self._later(seconds, lambda: self._canary_fails(pod))
        self._later(seconds + CANARY_LIVES, lambda: self._canary_ends(pod))

    def _canary_fails(self, pod: Object) -> None:
        self._tell(json.dumps({"failed": pod["metadata"]["name"], "at": time.monotonic()}))
        self._fail_to_pull(pod)

    def _canary_ends(self, pod: Object) -> None:
        self._tell(json.dumps({"ended": pod["metadata"]["name"], "at": time.monotonic()}))
        self._remove(pod)

    def _zombie(self) -> None:
        """A pod ends while its processes stay on their GPUs; later it runs again."""
        uid = self._chance.choice(self._computing)
        pod = self._objects.get("pods", uid)
        if pod["status"]["phase"] != "Running":
            return  # already ended
        self._still.remove(uid)
        self._put(pods.finished(pod, time.time()))

        def again() -> None:
            self._put(pod)
            self._still.append(uid)

        self._later(self._chance.uniform(*ZOMBIE[1]), again)

    def _put(self, pod: Object) -> None:
        self._objects.put("pods", pod)

    def _remove(self, pod: Object) -> None:
        self._objects.remove("pods", pod["metadata"]["uid"])

    def _event(self, pod: Object, reason: str, message: str) -> None:
        event = pods.event(pod, next(self._numbers), reason, message, time.time())
        self._objects.put("events", event)
        self._after(EVENTS_KEPT, lambda: self._objects.remove("events", event["metadata"]["uid"]))

    # Agents

    def _for_a_while(self, kept: set[str], seconds: tuple[float, float]) -> None:
        one = self._chance.choice(self._restless)
        if one not in self._agents.mute | self._agents.away | self._agents.ill:
            kept.add(one)
            self._after(self._chance.uniform(*seconds), lambda: kept.discard(one))

    # Time

    def _later(self, seconds: float, act: Act) -> None:
        """Schedule a pod change after this many seconds."""
        heapq.heappush(self._changes, (time.monotonic() + seconds, next(self._numbers), act))

    def _after(self, seconds: float, act: Act) -> None:
        heapq.heappush(self._others, (time.monotonic() + seconds, next(self._numbers), act))

    def _repeat(self, seconds: float, act: Act) -> None:
        def again() -> None:
            act()
            self._after(seconds, again)

        self._after(seconds, again)


def _due(heap: list[tuple[float, int, Act]], many: bool) -> Iterator[Act]:
    """Due steps: one, or all."""
    while heap and heap[0][0] <= time.monotonic():
        yield heapq.heappop(heap)[2]
        if not many:
            return


def _cards(pod: Object) -> bool:
    limits = pod["spec"]["containers"][0]["resources"].get("limits", {})
    return 0 < int(limits.get("nvidia.com/gpu", 0)) <= GPUS


def _is_agent(pod: Object) -> bool:
    return bool(pod["metadata"]["name"].startswith("gpuwarden-agent"))


def _node(pod: Object) -> int:
    return int(pod["spec"]["nodeName"].rpartition("-")[2])
