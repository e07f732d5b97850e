"""Python programs that really fail, as training programs do, with the class that their log proves.

`/python` is the interpreter's directory in the container, mounted read-only; /dev/shm there has 64 MiB.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

# The lab's image has no Python: the interpreter of the tests and the C library come from the machine.
MOUNTS = {"python": (sys.base_prefix, "/python"), "lib": ("/lib", "/lib"), "lib64": ("/lib64", "/lib64")}
ENVIRONMENT = {"PYTHONHOME": "/python", "LD_LIBRARY_PATH": "/python/lib", "PYTHONDONTWRITEBYTECODE": "1"}
TOKEN = "hf_PLANTEDplantedPLANTEDplanted0000"

_SERVER = """
import http.server, threading, urllib.request
class Hub(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response({status}); self.end_headers()
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Hub)
threading.Thread(target=server.serve_forever, daemon=True).start()
"""


class FailingProgram(NamedTuple):
    """A program, the class of its failure, the cause in explanations, and whether it fails outside a container too."""

    name: str
    log_cause: str
    explained: str
    source: str
    anywhere: bool = True


PROGRAMS = (
    FailingProgram("missing-file", "missing-file", "crash-no-file", "open('/data/imagenet/labels.txt')"),
    FailingProgram(
        "permission", "permission", "crash-permission",
        "import os\nos.setgid(65534)\nos.setuid(65534)\nopen('/root/checkpoint', 'w')",
    ),
    FailingProgram("read-only", "read-only", "crash-read-only", "open('/python/checkpoint', 'w')", anywhere=False),
    FailingProgram(
        "disk-full", "disk-full", "crash-disk-full", "with open('/dev/full', 'w') as file:\n    file.write('x')"
    ),
    FailingProgram("missing-module", "missing-module", "crash-no-module", "import flash_attn_of_no_image"),
    FailingProgram(
        "missing-library", "missing-symbol", "crash-missing-symbol",
        "import ctypes\nctypes.CDLL('libcudart_of_no_image.so.12')",
    ),
    FailingProgram(
        "dns", "dns", "crash-dns",
        "import urllib.request\nurllib.request.urlopen('http://hub.no-such-name.invalid/model', timeout=8)",
    ),
    FailingProgram(
        "refused", "refused", "crash-refused", "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:9/model')"
    ),
    FailingProgram(
        "shm", "shm", "crash-shm",
        "import faulthandler\nfaulthandler.enable()\nfrom multiprocessing import shared_memory\n"
        "batch = shared_memory.SharedMemory(create=True, size=256 << 20)\n"
        "for page in range(0, 256 << 20, 4096):\n    batch.buf[page] = 1",
        anywhere=False,
    ),
    FailingProgram(
        "http-denied", "http-denied", "crash-http-denied",
        _SERVER.format(status=403) + f"print('export HF_TOKEN={TOKEN}', flush=True)\n"
        f"try:\n    urllib.request.urlopen(f'http://127.0.0.1:{{server.server_port}}/model')\n"
        f"except Exception as error:\n"
        f"    raise RuntimeError(f'403 Client Error for url: http://me:{TOKEN}@hub/x?token={TOKEN}') from error",
    ),
    FailingProgram("memory", "out-of-memory", "crash-host-memory", "features = bytearray(1 << 50)"),
    FailingProgram(
        "segfault", "segfault", "crash-native-crash",
        "import ctypes, faulthandler\nfaulthandler.enable()\nctypes.string_at(0)",
    ),
    FailingProgram("exception", "python-exception", "crash-python-exception", "{'loss': 1.0}['optimizer_state']"),
)  # fmt: skip


def program_pod(program: FailingProgram, **spec: Any) -> dict[str, Any]:
    """Fields of `pod_manifest` for a pod that runs a program."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    volumes = [{"name": name, "hostPath": {"path": host}} for name, (host, _) in MOUNTS.items()]
    mounts = [{"name": name, "mountPath": path, "readOnly": True} for name, (_, path) in MOUNTS.items()]
    env = [{"name": name, "value": value} for name, value in ENVIRONMENT.items()]
    return {
        "command": (f"/python/bin/{version}", "-u", "-c", program.source),
        "container": {"volumeMounts": mounts, "env": env},
        "spec": {"volumes": volumes, **spec},
    }
