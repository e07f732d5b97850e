"""A container created at any moment around the removal of its image never loses the image, on real engines."""

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

ROUNDS, WORKERS, LATE_EVERY = 100, 4, 10
SETTLE = 0.4
BEFORE, AFTER = 0.25, 0.15  # seconds around the start of the removal in which a container is created


@pytest.fixture(scope="module", params=KINDS)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    directory: Path = tmp_path_factory.mktemp(f"race-{request.param}")
    base = busybox_layer()
    with rig(request.param, directory, archive((Image(BASE, (base,)), Image(PAUSE, (base,))))) as started:
        yield started


class Racer:
    """Removes one image repeatedly while a container is created from it."""

    def __init__(self, engine: Rig, actions: ImageActions, number: int) -> None:
        self.name = f"local/race{number}:1"
        self._engine = engine
        self._actions = actions
        self._archive = archive((Image(self.name, (busybox_layer(), layer({f"own{number}": os.urandom(1 << 18)}))),))
        self._engine.import_archive(self._archive)
        self._random = random.Random(number)

    def round(self, late: bool) -> str:
        """Outcome of one round. Fails if a container was created and its image is missing afterwards.

        A late container is created after the removal, however long that takes on a busy machine.
        """
        image = self._engine.facts()[self.name]
        action = RemoveImage(
            runtime=self._engine.name, image_id=image.id, names=image.names, min_age_seconds=0.0, protect_local=False
        )
        codes: list[str] = []
        removal = threading.Thread(target=lambda: codes.append(self._actions.remove(action).code))
        delay = self._random.uniform(-BEFORE, AFTER)
        if late:
            removal.start()
            removal.join()
        elif delay < 0:
            threading.Timer(-delay, removal.start).start()
        else:
            removal.start()
            time.sleep(delay)
        try:
            container = self._engine.create(self.name)
        except NoImageError:
            container = None
        while not codes:
            time.sleep(0.01)
        removal.join()
        return self._judge(container, codes[0])

    def _judge(self, container: str | None, code: str) -> str:
        if container is None:
            assert code == "removed" or self.name in self._engine.facts(), code
            if code == "removed":
                self._engine.import_archive(self._archive)
            return f"no container, {code}"
        assert self.name in self._engine.facts(), f"a container was created, but its image was {code}"
        self._engine.start(container)
        self._engine.discard(self._engine.create(self.name))  # there is no registry to pull from
        self._engine.discard(container)
        return f"created, {code}"


@pytest.mark.timeout(300)
def test_a_container_that_begins_meanwhile_never_loses_its_image(engine: Rig) -> None:
    actions = engine.actions(settle=SETTLE)
    racers = [Racer(engine, actions, number) for number in range(WORKERS)]
    with ThreadPoolExecutor(WORKERS) as pool:
        results = pool.map(
            lambda racer: [racer.round(number % LATE_EVERY == 0) for number in range(ROUNDS // WORKERS)], racers
        )
        outcomes = Counter(code for rounds in results for code in rounds)
    assert outcomes.total() == ROUNDS
    assert outcomes.keys() <= {"created, in-use", "no container, removed", "no container, in-use"}, outcomes
    assert outcomes["created, in-use"] > ROUNDS / 5, outcomes
    assert outcomes["no container, removed"] > 0, outcomes
    print(dict(outcomes))


INTERRUPTED = """
import sys
from pathlib import Path
from monitor.agent.actions.images import ImageActions
from monitor.agent.journal import ActionJournal
from monitor.agent.actions.runtime_images import HoldJournal
from monitor.agent.runtime import Runtimes
from monitor.facts import ImageCacheFact, ImageFact
from monitor.facts.actions import RemoveImage
docker, cri, journal, runtime, image_id, *names = sys.argv[1:]
known = ImageCacheFact(runtime=runtime, images=(ImageFact(id=image_id, first_seen_at=1.0),))
actions = ImageActions(Runtimes(docker, (cri,)), lambda: (known,), HoldJournal(ActionJournal(journal)), settle=60.0)
action = RemoveImage(
    runtime=runtime, image_id=image_id, names=tuple(names), min_age_seconds=0.0, protect_local=False
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
    program = [sys.executable, "-c", INTERRUPTED, *sockets, str(engine.journal), engine.name, image.id, *image.names]
    with subprocess.Popen(program) as agent:
        wait_until(lambda: not {name, other} & engine.facts().keys(), 60, "the names are removed")
        agent.kill()
    actions = engine.actions()
    actions.restore_interrupted()
    facts = engine.facts()
    assert facts[name].id == facts[other].id == image.id
    assert set(facts[name].names) == set(image.names)
    for tag in (name, other):
        engine.start(container := engine.create(tag))
        engine.discard(container)
    again = engine.actions()
    again.restore_interrupted()  # nothing is left to restore
    action = RemoveImage(
        runtime=engine.name, image_id=image.id, names=image.names, min_age_seconds=0.0, protect_local=False
    )
    assert again.remove(action).code == "removed"
    engine.actions().restore_interrupted()
    assert not {name, other} & engine.facts().keys()
