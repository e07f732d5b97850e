"""Tells the story of the demo: in the terminal when a scene begins, and on the page at any time."""

from __future__ import annotations

import time
from collections.abc import Callable

from monitor.base.threads import Periodic
from monitor.config.types import Listen
from monitor.i18n import Value, say
from monitor.present.guide import Guide, guide_text
from monitor.sim.outages import NODES
from monitor.sim.scenes import SCENES, guide_of, scene_at
from monitor.sim.simulation import Simulation

CHECK_INTERVAL_SECONDS = 0.2


class Narrator:
    """Begins the story at start(), and tells each of its scenes once until stop()."""

    def __init__(
        self, simulation: Simulation, listen: Listen, lang: str, tell: Callable[[str], None], speed: float
    ) -> None:
        self._simulation = simulation
        self._page = f"http://{listen}"
        self._lang = lang
        self._tell = tell
        self._speed = speed
        self._nodes = {role: simulation.context.node(role).name for role in NODES}
        self._began = time.time()
        self._told = -1  # index of the latest scene in the terminal
        self._checks = Periodic("narrator", self._check, CHECK_INTERVAL_SECONDS)

    def introduce(self, robot: str, variables: str) -> None:
        """Print what is simulated, and where to look."""
        nodes = self._simulation.cluster.nodes.values()
        gpus = sum(len(node.gpus) for node in nodes)
        length = SCENES[-1].at / self._speed
        self._print("begin", nodes=len(nodes), gpus=gpus, count=len(SCENES), length=length)
        self._print("page", url=self._url("/"))
        self._print("robot", url=robot)
        self._print("command", variables=variables)

    def start(self) -> None:
        self._simulation.play(self._speed)
        self._began = time.time()
        self._checks.start()

    def stop(self) -> None:
        self._checks.stop()

    def guide(self) -> Guide:
        """The current scene."""
        return self._guide_of(scene_at(self._simulation.elapsed))

    def _guide_of(self, index: int) -> Guide:
        return guide_of(index, self._nodes, self._began, self._speed)

    def _check(self) -> None:
        for index in range(self._told + 1, scene_at(self._simulation.elapsed) + 1):
            self._told = index
            self._tell_scene(self._guide_of(index))

    def _tell_scene(self, guide: Guide) -> None:
        text = guide_text(guide, self._lang)
        self._tell("")
        self._print("scene", number=guide.number, total=guide.total, title=text.title)
        self._print("now", text=text.now)
        self._print("says", text=text.says)
        self._print("look", text=text.look, url=self._url(guide.path))
        if text.next_title is not None and guide.next_at is not None:
            self._print("next", seconds=max(0.0, guide.next_at - time.time()), title=text.next_title)
        else:
            self._print("end")

    def _url(self, path: str) -> str:
        """A page in the language of the demo."""
        return f"{self._page}{path}{'&' if '?' in path else '?'}lang={self._lang}"

    def _print(self, key: str, **values: Value) -> None:
        self._tell(say(self._lang, f"demo.{key}", values))
