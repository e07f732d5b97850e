"""Input of the agent on its node: kernel and kubelet files, responses of container runtimes."""

from __future__ import annotations

import contextlib
import http.client
import io
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import msgspec
from google.protobuf.message import DecodeError

from monitor.agent import mountinfo
from monitor.agent.actions.api import decode_request
from monitor.agent.actions.auth import ActionAuthenticator, ActionRefusedError, UsedIds
from monitor.agent.cgroup import parse_owner
from monitor.agent.collectors.container_usage import locate
from monitor.agent.collectors.log_tails import MAX_LINE_CHARS, log_tail_fact
from monitor.agent.collectors.xid import merge_events, parse_uuid, parse_xid
from monitor.agent.datasets import mounts
from monitor.agent.grpc_client.session import Http2Session
from monitor.agent.grpc_client.status import GrpcError
from monitor.agent.http_io import MAX_BODY_BYTES, FramingError, body_length
from monitor.agent.kernel.lines import classify
from monitor.agent.kernel.summary import add_lines
from monitor.agent.kmsg import KernelMessage, parse_record
from monitor.agent.kubelet import pod_resources, podresources_pb2
from monitor.agent.kubelet.checkpoint import CheckpointError, CheckpointFile
from monitor.agent.kubelet.thresholds import parse_arguments, parse_config
from monitor.agent.log_files import TAIL_CHARS, read_tail
from monitor.agent.procfs import parse_stat
from monitor.agent.runtime import cri_facts, docker_json
from monitor.agent.runtime.api import EngineError
from monitor.agent.runtime.proto import cri_pb2
from monitor.base.signing import RequestSignature, RequestVerifier
from monitor.facts import ContainerFact
from monitor.facts.gpu import XidFacts
from monitor.facts.kernel import KernelFacts
from monitor.facts.nvidia.xids import xid_meaning
from monitor.facts.program_logs import classify_log

CONTAINER = "65a1b6ad09655b3f1475ede1aa0061a97c0d1ada9f2b2acac959afbc92094463"
NO_FIGURE = (ValueError, OverflowError)  # invalid kernel output costs one run of one collector
_VERIFIER = RequestVerifier("gpu-01", "gpuwarden-public-ed25519:LbJAn/ZwI1At3jwmVJ3uqBNuf7ZTxQBEi6Ap+KBcWqo=")
LONGEST_ID = 200  # bound on container and pod ids
MAX_MESSAGE, READ = 1000, 40


@contextlib.contextmanager
def _files(**contents: bytes) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as directory:
        for name, content in contents.items():
            with open(os.path.join(directory, name), "wb") as file:
                file.write(content)
        yield directory


def cgroup(data: bytes) -> None:
    """/proc/<pid>/cgroup: a container can choose the names below its own."""
    owner = parse_owner(data.decode("utf-8", "surrogateescape"))
    assert all(each is None or len(each) <= LONGEST_ID for each in owner), owner


def cgroup_files(data: bytes) -> None:
    """Cgroup files of both versions."""
    names = [
        "cpu.stat", "memory.current", "memory.stat", "cpu.max", "memory.max",
        "cpuacct.usage", "memory.usage_in_bytes", "cpu.cfs_quota_us", "cpu.cfs_period_us",
    ]  # fmt: skip
    with _files(**dict.fromkeys(names, data)) as directory:
        os.mkdir(f"{directory}/1")
        for cgroups in (f"0::/{CONTAINER}\n", f"3:cpu,cpuacct:/{CONTAINER}\n4:memory:/{CONTAINER}\n"):
            with open(f"{directory}/1/cgroup", "w", encoding="utf-8") as file:
                file.write(cgroups)
            for part in (CONTAINER, f"cpu,cpuacct/{CONTAINER}", f"memory/{CONTAINER}"):
                os.makedirs(os.path.dirname(f"{directory}/{part}"), exist_ok=True)
                if not os.path.lexists(f"{directory}/{part}"):
                    os.symlink(directory, f"{directory}/{part}")
            place = locate(directory, directory, 1, CONTAINER)
            assert place is not None
            for ask in (place.cpu, place.memory, place.limits):
                with contextlib.suppress(*NO_FIGURE):
                    ask()


def proc_stat(data: bytes) -> None:
    """/proc/<pid>/stat, with a process-chosen name."""
    with contextlib.suppress(*NO_FIGURE):
        assert parse_stat(data, 0, 0.0).started_at is not None


def mount_table(data: bytes) -> None:
    """/proc/<pid>/mountinfo of the node and of containers, and fdinfo with a mount id."""
    with contextlib.suppress(ValueError):
        for mount in mountinfo.parse_mountinfo(data):
            assert mountinfo.decoded(mount.point).isprintable() or mount.point
    with contextlib.suppress(ValueError):
        list(mounts.parse_mountinfo(data))
    with contextlib.suppress(OSError):
        mounts.parse_mount_id(data[:4000])


def kernel_log(data: bytes) -> None:
    """Lines of /dev/kmsg, up to the XIDs and events in them."""
    facts, events = XidFacts(), KernelFacts()
    for line in data.decode("utf-8", "replace").split("\n"):
        record = parse_record(line)
        text = record.text if record is not None else line
        event = parse_xid(KernelMessage(record.since_boot if record is not None else 0.0, text))
        parse_uuid(text)
        facts = merge_events(facts, [event] if event is not None else [])
        xid_meaning(event.code if event is not None else 149, text)
        if (classified := classify(text)) is not None:
            events = add_lines(events, [(float(len(events.recent)), classified)], 0)
    msgspec.json.decode(msgspec.json.encode(facts), type=XidFacts)  # not a fact: the daemon would reject it
    msgspec.json.decode(msgspec.json.encode(events), type=KernelFacts)


def checkpoint(data: bytes) -> None:
    """Checkpoint file of the device manager."""
    with _files(checkpoint=data) as directory, contextlib.suppress(CheckpointError):
        assert all(isinstance(each.device_id, str) for each in CheckpointFile(f"{directory}/checkpoint").read())


def kubelet_allocations(data: bytes) -> None:
    """PodResources response, as bytes on the socket."""
    with contextlib.suppress(DecodeError):
        pod_resources._allocations(podresources_pb2.ListPodResourcesResponse.FromString(data))  # type: ignore[attr-defined]  # made by protobuf at run time


def grpc_response(data: bytes) -> None:
    """Everything that the server of a runtime's socket sends during a call."""
    session = Http2Session()
    session.begin([(":method", "POST"), (":scheme", "http"), (":path", "/s/m"), (":authority", "x")], b"", MAX_MESSAGE)
    with contextlib.suppress(GrpcError):
        for start in range(0, len(data), READ):
            session.receive(data[start : start + READ])
        session.receive(b"")
    with contextlib.suppress(GrpcError):
        assert len(session.message()) <= MAX_MESSAGE
    session.outgoing()


def kubelet_config(data: bytes) -> None:
    """Kubelet configuration and command line."""
    text = data.decode("utf-8", "replace")
    with contextlib.suppress(ValueError):
        parse_config(text)
    with contextlib.suppress(ValueError):
        parse_arguments(text.split())


def docker(data: bytes) -> None:
    """Docker engine responses: the container's creator chooses names, labels and commands."""
    with contextlib.suppress(EngineError):
        for row in docker_json.ListDecoder(docker_json.ContainerRow).decode(data):
            msgspec.json.encode(docker_json.container_fact(row))
    with contextlib.suppress(EngineError):
        images = docker_json.ListDecoder(docker_json.ImageRow).decode(data)
        shared = docker_json.shared_sizes(images)
        for image in images:
            msgspec.json.encode(docker_json.image_fact(image, shared.get(image.id), ()))
    with contextlib.suppress(EngineError):
        inspection = docker_json.decode(data, docker_json.Inspection)
        msgspec.json.encode(docker_json.container_fact(docker_json.ContainerRow(id="x"), inspection))
    with contextlib.suppress(EngineError):
        usage = docker_json.decode(data, docker_json.DiskUsage)
        docker_json.ListDecoder(docker_json.VolumeRow).decode(usage.volumes)
        docker_json.ListDecoder(docker_json.BuildCacheRow).decode(usage.build_cache)


def cri(data: bytes) -> None:
    """Responses of containerd."""
    messages: dict[str, Any] = {name: getattr(cri_pb2, name) for name in ("Container", "PodSandbox", "Image")}
    with contextlib.suppress(DecodeError):
        one = messages["Container"].FromString(data)
        pod = messages["PodSandbox"].FromString(data)
        image = messages["Image"].FromString(data)
        msgspec.json.encode(cri_facts.container_fact("containerd", cri_facts.PodContainer(one, pod)))
        msgspec.json.encode(cri_facts.image_fact(image, (), None))
        cri_facts.containers_by_image([image], [one])
    with contextlib.suppress(DecodeError):
        cri_facts.root_and_sandbox_image({"config": data.decode("utf-8", "replace")}, ())


def action(data: bytes) -> None:
    """Action requests to an agent."""
    with contextlib.suppress(ActionRefusedError):
        decode_request(data)


def signature(data: bytes) -> None:
    """The Authorization header of an action request, which anybody can send."""
    header = data.decode("latin-1")
    found = RequestSignature.parse(header)
    if found is not None:
        assert RequestSignature.parse(found.header()) == found
    with _files() as directory:
        authenticator = ActionAuthenticator(_VERIFIER, 10, UsedIds(f"{directory}/used", 0.0))
        try:
            authenticator.authenticate("POST", "/v1/actions", header, "10.0.0.1", b"{}")
        except ActionRefusedError:
            return
    raise AssertionError("nobody has the key")


def request_head(data: bytes) -> None:
    """Headers of requests to an agent."""
    with contextlib.suppress(http.client.HTTPException, FramingError):
        assert 0 <= body_length("POST", http.client.parse_headers(io.BytesIO(data))) <= MAX_BODY_BYTES


def log_tail(data: bytes) -> None:
    """The log of a container: whatever its program writes."""
    with _files(log=data) as directory:
        tail = read_tail(os.path.join(directory, "log"))
    assert len(tail) <= TAIL_CHARS
    fact = log_tail_fact(ContainerFact(id="c", runtime="docker", state="exited"), classify_log(tail), lines=True)
    assert len(fact.line or "") <= MAX_LINE_CHARS
    assert msgspec.json.decode(msgspec.json.encode(fact), type=type(fact)) == fact
