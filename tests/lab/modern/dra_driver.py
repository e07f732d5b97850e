"""A driver for dynamic resource allocation of the fake GPUs. A new kubelet finds it by its socket."""

from __future__ import annotations

import argparse
import json
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from tests.lab.modern.claims import DRIVER, device_class, device_name, resource_slice, slice_name

ANSWER_LIMIT = 10
SPEC_KIND = f"k8s.{DRIVER}/claim"

dra, dra_services = grpc.protos_and_services("tests/lab/modern/dra.proto")
known, known_services = grpc.protos_and_services("tests/lab/modern/plugin_registration.proto")


@dataclass(frozen=True)
class Devices:
    """The node's GPUs in the API server and in files of the Container Device Interface."""

    api: Any
    node: str
    uuids: Sequence[str]
    specs: Path
    # Exists while the devices are published.
    notice: Path

    def publish(self) -> None:
        """Create the device class and the node's slice unless they exist. The kubelet removes slices at its start."""
        for create, manifest in (
            (self.api.create_device_class, device_class()),
            (self.api.create_resource_slice, resource_slice(self.node, self.uuids)),
        ):
            try:
                create(manifest, _request_timeout=ANSWER_LIMIT)
            except ApiException as error:
                if error.status != 409:
                    raise
        self.notice.touch()

    def withdraw(self) -> None:
        """Remove the node's slice."""
        self.notice.unlink(missing_ok=True)
        self.api.delete_resource_slice(slice_name(self.node), _request_timeout=ANSWER_LIMIT)

    def allocated(self, namespace: str, name: str) -> list[Any]:
        """Devices of this driver that a claim has."""
        claim = self.api.read_namespaced_resource_claim(name, namespace, _request_timeout=ANSWER_LIMIT)
        return [each for each in claim.status.allocation.devices.results if each.driver == DRIVER]

    def prepare(self, claim_uid: str, names: Sequence[str]) -> str:
        """Write the file that gives a container these devices; return its id for the runtime."""
        uuids = [uuid for index, uuid in enumerate(self.uuids) if device_name(index) in names]
        edits = {"env": [f"NVIDIA_VISIBLE_DEVICES={','.join(uuids)}"]}
        devices = [{"name": claim_uid, "containerEdits": edits}]
        content = {"cdiVersion": "0.6.0", "kind": SPEC_KIND, "devices": devices}
        self._spec(claim_uid).write_text(json.dumps(content))
        return f"{SPEC_KIND}={claim_uid}"

    def unprepare(self, claim_uid: str) -> None:
        """Remove that file."""
        self._spec(claim_uid).unlink(missing_ok=True)

    def _spec(self, claim_uid: str) -> Path:
        return self.specs / f"{DRIVER}-{claim_uid}.json"


class Driver(dra_services.DRAPluginServicer):  # type: ignore[misc, name-defined]  # made from the .proto at run time
    """Prepares claimed devices for containers."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices

    def NodePrepareResources(self, request: Any, context: grpc.ServicerContext) -> Any:
        return dra.PrepareResponse(claims={claim.uid: self._prepare(claim) for claim in request.claims})

    def _prepare(self, claim: Any) -> Any:
        try:
            results = self._devices.allocated(claim.namespace, claim.name)
        except ApiException as error:
            return dra.Prepared(error=str(error))
        spec = self._devices.prepare(claim.uid, [each.device for each in results])
        return dra.Prepared(
            devices=[
                dra.Device(
                    request_names=[each.request],
                    pool_name=each.pool,
                    device_name=each.device,
                    cdi_device_ids=[spec],
                )
                for each in results
            ]
        )

    def NodeUnprepareResources(self, request: Any, context: grpc.ServicerContext) -> Any:
        for claim in request.claims:
            self._devices.unprepare(claim.uid)
        return dra.UnprepareResponse(claims={claim.uid: dra.Unprepared() for claim in request.claims})


class Registration(known_services.RegistrationServicer):  # type: ignore[misc, name-defined]  # likewise
    """Tells the kubelet where the driver is, and publishes the devices once the kubelet knows it."""

    def __init__(self, endpoint: Path, devices: Devices) -> None:
        self._endpoint = endpoint
        self._devices = devices

    def GetInfo(self, request: Any, context: grpc.ServicerContext) -> Any:
        return known.PluginInfo(
            type="DRAPlugin", name=DRIVER, endpoint=str(self._endpoint), supported_versions=["v1.DRAPlugin"]
        )

    def NotifyRegistrationStatus(self, request: Any, context: grpc.ServicerContext) -> Any:
        print(f"registered: {request.plugin_registered} {request.error}", flush=True)
        if request.plugin_registered:
            self._devices.publish()
        return known.RegistrationStatusResponse()


def serve(registry: Path, devices: Devices) -> grpc.Server:
    """Serve driver and registration, each at its own socket in the kubelet's directories."""
    registration, endpoint = registry / f"{DRIVER}-reg.sock", registry.parent / "plugins" / f"{DRIVER}.sock"
    server = grpc.server(ThreadPoolExecutor(4))
    dra_services.add_DRAPluginServicer_to_server(Driver(devices), server)
    known_services.add_RegistrationServicer_to_server(Registration(endpoint, devices), server)
    for socket in (endpoint, registration):
        socket.parent.mkdir(exist_ok=True)
        socket.unlink(missing_ok=True)
        server.add_insecure_port(f"unix://{socket}")
    server.start()
    return server


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--registry", type=Path, required=True)
    parser.add_argument("--device-specs", type=Path, required=True)
    parser.add_argument("--node", required=True)
    parser.add_argument("--notice", type=Path, required=True)
    parser.add_argument("uuids", nargs="+")
    given = parser.parse_args()
    api: Any = config.new_client_from_config(given.kubeconfig)  # type: ignore[no-untyped-call]  # theirs
    with api:
        devices = Devices(client.ResourceV1Api(api), given.node, given.uuids, given.device_specs, given.notice)
        given.notice.unlink(missing_ok=True)
        server = serve(given.registry, devices)
        signal.sigwait({signal.SIGTERM})
        server.stop(grace=1).wait()
        devices.withdraw()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    main()
