"""The preloaded clock affects another process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.chaos.clock import Clock

TELLS = "import time, datetime; print(time.time(), datetime.datetime.now().timestamp(), time.monotonic())"


def test_a_process_goes_by_the_clock_that_was_set_and_only_its_time_of_day_does(tmp_path: Path) -> None:
    clock = Clock(tmp_path)
    for ahead in (0, 3600, -600):
        clock.set(ahead)
        before, began = time.time(), time.monotonic()
        said = subprocess.check_output([sys.executable, "-c", TELLS], env=os.environ | clock.environment(), text=True)
        wall, other, monotonic = map(float, said.split())
        assert before + ahead <= wall <= other <= time.time() + ahead
        assert began <= monotonic <= time.monotonic()
