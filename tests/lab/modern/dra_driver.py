"""A driver for dynamic resource allocation of the fake GPUs. The kubelet finds it by its socket, also after a restart."""

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

from tests.lab.modern.claims import API, DRIVER, device_class, device_name, resource_slice, slice_name

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

    def publish(self) -> None:
        """Create the device class and the node's slice unless they exist. The kubelet removes slices at its start."""
        for plural, manifest in (
            ("deviceclasses", device_class()),
            ("resourceslices", resource_slice(self.node, self.uuids)),
        ):
            try:
                self._call("POST", plural, manifest)
            except ApiException as error:
                if error.status != 409:
                    raise

    def withdraw(self) -> None:
        """Remove the node's slice."""
        self._call("DELETE", f"resourceslices/{slice_name(self.node)}")

    def allocated(self, namespace: str, name: str) -> list[dict[str, Any]]:
        """Devices of this driver that a claim has."""
        claim = self._call("GET", f"namespaces/{namespace}/resourceclaims/{name}")
        results: list[dict[str, Any]] = claim["status"]["allocation"]["devices"]["results"]
        return [each for each in results if each["driver"] == DRIVER]

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

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        return self.api.call_api(
            f"/apis/{API}/{path}",
            method,
            body=body,
            header_params={"Content-Type": "application/json"},
            auth_settings=["BearerToken"],
            response_type="object",
            _return_http_data_only=True,
            _request_timeout=ANSWER_LIMIT,
        )


class Driver(dra_services.DRAPluginServicer):  # type: ignore[misc, name-defined]  # made from the .proto at run time
    """Prepares claimed devices for containers."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices

    def NodePrepareResources(self, request: Any, context: grpc.ServicerContext) -> Any:
        return dra.PrepareResponse(claims={claim.uid: self._prepare(claim) for claim in request.claims})

    def _prepare(self, claim: Any) -> Any:
        try:
            results = self._devices.allocated(claim.namespace, claim.name)
        except (ApiException, KeyError) as error:
            return dra.Prepared(error=str(error))
        spec = self._devices.prepare(claim.uid, [each["device"] for each in results])
        return dra.Prepared(
            devices=[
                dra.Device(
                    request_names=[each["request"]],
                    pool_name=each["pool"],
                    device_name=each["device"],
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
    parser.add_argument("uuids", nargs="+")
    given = parser.parse_args()
    with config.new_client_from_config(given.kubeconfig) as api:
        devices = Devices(api, given.node, given.uuids, given.device_specs)
        server = serve(given.registry, devices)
        signal.sigwait({signal.SIGTERM})
        server.stop(grace=1).wait()
        devices.withdraw()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    main()
