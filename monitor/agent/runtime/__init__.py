"""Container runtimes of one node behind one protocol: Docker by its Engine API, containerd and CRI-O by CRI.

What is here asks and changes nothing: no image is pulled, no container started or stopped. The exceptions are what
removing an image takes (`containerd_native`, `UnixHttp.send`), which `monitor.agent.actions` alone uses.
May import: monitor.facts and, of monitor.agent: guard, clock. May not import: collectors, the runner.

How a runtime that does not answer is shown
    A question has no time limit of its own: a wedged engine cannot be told from a slow one, and asking again would
    only add to its queue. Where a node has one runtime, it is asked on the collector's own thread, so the runner
    reports that run as hung since it began, does not start a second one, and sees it end when the engine lets go or
    dies. Where a node has several, `Survey` asks each on a lane of its own (`guard.Guard`). What is answered is
    returned, and the collector's `trouble` names the silent ones and since when; a silent one is not asked again until
    its call has come back. If none answers, the collector fails with that same text.

    Only questions about a single container are limited in time (see `details`): Docker is known to hang on inspecting
    one container while it answers everything else, and that must not cost the node the other containers.
"""

from monitor.agent.runtime.api import EngineError, NotServedError, Runtime
from monitor.agent.runtime.runtimes import Runtimes
from monitor.agent.runtime.survey import Survey

__all__ = ["EngineError", "NotServedError", "Runtime", "Runtimes", "Survey"]
