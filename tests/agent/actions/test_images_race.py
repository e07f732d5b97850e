"""A container begins to use an image at any moment around its removal, on real engines: it never loses the image."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from monitor.agent.actions.images import ImageActions
from monitor.facts.actions import RemoveImage
from tests.agent.actions.rigs import KINDS, ContainerdRig, DockerRig, NoImageError, Rig, rig
from tests.support import wait_until
from tests.support.engines import BASE, PAUSE
from tests.support.image_archive import Image, archive, busybox_layer, layer

ROUNDS, WORKERS = 100, 4
SETTLE = 0.4
BEFORE, AFTER = 0.25, 0.15  # seconds around the beginning of the removal in which a container begins


@pytest.fixture(scope="module", params=KINDS)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    directory: Path = tmp_path_factory.mktemp(f"race-{request.param}")
    base = busybox_layer()
    with rig(request.param, directory, archive((Image(BASE, (base,)), Image(PAUSE, (base,))))) as made:
        yield made


class Racer:
    """Has one image, and has it removed again and again while a container is made of it."""

    def __init__(self, engine: Rig, actions: ImageActions, number: int) -> None:
        self.name = f"local/race{number}:1"
        self._engine = engine
        self._actions = actions
        self._archive = archive((Image(self.name, (busybox_layer(), layer({f"own{number}": os.urandom(1 << 18)}))),))
        self._engine.import_archive(self._archive)
        self._random = random.Random(number)

    def round(self) -> str:
        """Return what came of a round. Fail if a container was made and its image is not there afterwards."""
        image = self._engine.facts()[self.name]
        action = RemoveImage(
            runtime=self._engine.name, image_id=image.id, names=image.names, min_age_seconds=0.0, protect_local=False
        )
        words: list[str] = []
        removal = threading.Thread(target=lambda: words.append(self._actions.remove(action).word))
        delay = self._random.uniform(-BEFORE, AFTER)
        if delay < 0:
            threading.Timer(-delay, removal.start).start()
        else:
            removal.start()
            time.sleep(delay)
        try:
            container = self._engine.make(self.name)
        except NoImageError:
            container = None
        while not words:
            time.sleep(0.01)
        removal.join()
        return self._judge(container, words[0])

    def _judge(self, container: str | None, word: str) -> str:
        if container is None:
            assert word == "removed" or self.name in self._engine.facts(), word
            if word == "removed":
                self._engine.import_archive(self._archive)
            return f"came too late, {word}"
        assert self.name in self._engine.facts(), f"a container was made, and the image was {word}"
        self._engine.start(container)
        self._engine.discard(self._engine.make(self.name))  # nothing can be pulled here
        self._engine.discard(container)
        return f"was made, {word}"


@pytest.mark.timeout(300)
def test_a_container_that_begins_meanwhile_never_loses_its_image(engine: Rig) -> None:
    actions = engine.actions(settle=SETTLE)
    racers = [Racer(engine, actions, number) for number in range(WORKERS)]
    with ThreadPoolExecutor(WORKERS) as pool:
        results = pool.map(lambda racer: [racer.round() for _ in range(ROUNDS // WORKERS)], racers)
        outcomes = Counter(word for rounds in results for word in rounds)
    assert outcomes.total() == ROUNDS
    assert outcomes.keys() <= {"was made, in-use", "came too late, removed", "came too late, in-use"}, outcomes
    assert outcomes["was made, in-use"] > ROUNDS / 5, outcomes
    assert outcomes["came too late, removed"] > 0, outcomes
    print(dict(outcomes))


DIES = """
import sys
from pathlib import Path
from monitor.agent.actions.images import ImageActions
from monitor.agent.journal import Journal
from monitor.agent.actions.runtime_images import Ledger
from monitor.agent.runtime import Runtimes
from monitor.facts import ImageCacheFact, ImageFact
from monitor.facts.actions import RemoveImage
docker, cri, journal, runtime, ident, *names = sys.argv[1:]
known = ImageCacheFact(runtime=runtime, images=(ImageFact(id=ident, first_seen_at=1.0),))
actions = ImageActions(Runtimes(docker, (cri,)), lambda: (known,), Ledger(Journal(journal)), settle=60.0)
action = RemoveImage(
    runtime=runtime, image_id=ident, names=tuple(names), min_age_seconds=0.0, protect_local=False
)
actions.remove(action)
"""


def test_an_agent_that_is_killed_in_the_middle_puts_the_names_back(engine: Rig) -> None:
    name, other = "local/killed:1", "local/killed-too:2"
    engine.load(Image(name, (busybox_layer(), layer({"killed": os.urandom(1 << 16)}))))
    engine.tag(name, other)
    image = engine.facts()[name]
    assert isinstance(engine, DockerRig | ContainerdRig)
    sockets = [engine.engine.socket, "/none"] if engine.name == "docker" else ["/none", engine.engine.socket]
    program = [sys.executable, "-c", DIES, *sockets, str(engine.journal), engine.name, image.id, *image.names]
    with subprocess.Popen(program) as agent:
        wait_until(lambda: not {name, other} & engine.facts().keys(), 20, "the names are gone")
        agent.kill()
    actions = engine.actions()
    actions.put_back_left_behind()
    facts = engine.facts()
    assert facts[name].id == facts[other].id == image.id
    assert set(facts[name].names) == set(image.names)
    for one in (name, other):
        engine.start(container := engine.make(one))
        engine.discard(container)
    again = engine.actions()
    again.put_back_left_behind()  # there is nothing left to be put back
    action = RemoveImage(
        runtime=engine.name, image_id=image.id, names=image.names, min_age_seconds=0.0, protect_local=False
    )
    assert again.remove(action).word == "removed"
    engine.actions().put_back_left_behind()
    assert not {name, other} & engine.facts().keys()
