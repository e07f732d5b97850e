"""Container runtimes of one node behind one protocol: Docker by its Engine API, containerd and CRI-O by CRI.

Everything here is read-only, except what removing an image needs (`containerd_native`, `UnixHttp.send`).

Runtimes that do not answer
    A query has no timeout of its own: a wedged engine cannot be distinguished from a slow one, and a retry would only
    lengthen its queue. The only runtime of a node is queried on the collector's thread: the runner reports the run as
    hung, does not start a second one, and sees it end when the engine recovers or dies. Of several runtimes, `Survey`
    queries each under a `HungCallGuard` and returns the results it gets; the collector's `warning` names the silent
    ones and since when, and a silent one is not queried again until its call has returned. If none answers, the
    collector fails with that message.

    Only queries about a single container have a timeout (see `inspection`): Docker is known to hang on inspecting one
    container while it answers everything else, and that must not cost the node its other containers.
"""

from monitor.agent.runtime.api import EngineError, NotServedError, Runtime
from monitor.agent.runtime.runtimes import Runtimes
from monitor.agent.runtime.survey import Survey

__all__ = ["EngineError", "NotServedError", "Runtime", "Runtimes", "Survey"]
