"""containerd and CRI-O, by the Container Runtime Interface (CRI)."""

from __future__ import annotations

import time
from functools import partial

from monitor.agent.runtime import cri_facts
from monitor.agent.runtime.cri_channel import CriChannel
from monitor.agent.runtime.inspection import INSPECT_TIMEOUT_SECONDS, InspectionCache, ListedContainer
from monitor.agent.runtime.proto import cri_pb2 as pb
from monitor.base.clock import Clock
from monitor.facts import ContainerFact, ImageCacheFact, RuntimeUsageFact


class CriRuntime:
    """A runtime that speaks CRI."""

    def __init__(self, socket: str, clock: Clock = time) -> None:
        self.socket = socket
        self.name = "cri"  # until it reports its name
        self.root: str | None = None
        self._version: str | None = None
        self._sandbox_image: str | None = None
        self._channel = CriChannel(socket)
        self._sandboxes: InspectionCache[pb.PodSandbox] = InspectionCache(clock)
        self._containers: InspectionCache[cri_facts.PodContainer] = InspectionCache(clock)

    def containers(self) -> tuple[ContainerFact, ...]:
        self._identify()
        containers = self._list_containers()
        sandboxes = self._list_sandboxes()  # after the containers, so that the pod of each is listed
        pods = {sandbox.id: sandbox for sandbox in sandboxes}
        in_pods = (cri_facts.PodContainer(container, pods.get(container.pod_sandbox_id)) for container in containers)
        # A CRI container runs once: a pod that restarts one creates a new id.
        return self._sandboxes.complete(
            (ListedContainer(sandbox.id, sandbox.state, sandbox) for sandbox in sandboxes),
            self._inspect_sandbox,
            partial(cri_facts.sandbox_fact, self.name),
        ) + self._containers.complete(
            (ListedContainer(listed.container.id, listed.container.state, listed) for listed in in_pods),
            self._inspect_container,
            partial(cri_facts.container_fact, self.name),
        )

    def images(self) -> ImageCacheFact:
        self._identify()
        images = self._channel.call("ImageService/ListImages", pb.ListImagesRequest(), pb.ListImagesResponse).images
        # After the images, so that a container started in between is seen.
        users = cri_facts.containers_by_image(images, self._list_containers())
        return ImageCacheFact(
            runtime=self.name,
            images=tuple(cri_facts.image_fact(image, users.get(image.id, ()), self._sandbox_image) for image in images),
            version=self._version or None,
            root=self.root,
            total_bytes=self._layers_bytes() if images else 0,
        )

    def usage(self) -> RuntimeUsageFact:
        self._identify()
        reply = self._channel.call(
            "RuntimeService/ListContainerStats", pb.ListContainerStatsRequest(), pb.ListContainerStatsResponse
        )
        return cri_facts.usage_fact(self.name, reply.stats, self._layers_bytes())

    def _identify(self) -> None:
        """Check the socket and, the first time, identify the runtime. Raise NotServedError if it does not serve CRI."""
        self._channel.check()
        if self._version is not None:
            return
        version = self._channel.negotiate()
        status = self._channel.call("RuntimeService/Status", pb.StatusRequest(verbose=True), pb.StatusResponse)
        filesystems = self._image_filesystems()
        self.name = version.runtime_name
        self.root, self._sandbox_image = cri_facts.root_and_sandbox_image(status.info, filesystems)
        self._version = version.runtime_version

    def _list_containers(self) -> list[pb.Container]:
        reply = self._channel.call(
            "RuntimeService/ListContainers", pb.ListContainersRequest(), pb.ListContainersResponse
        )
        return list(reply.containers)

    def _list_sandboxes(self) -> list[pb.PodSandbox]:
        reply = self._channel.call(
            "RuntimeService/ListPodSandbox", pb.ListPodSandboxRequest(), pb.ListPodSandboxResponse
        )
        return list(reply.items)

    def _inspect_sandbox(self, sandbox: pb.PodSandbox) -> ContainerFact:
        request = pb.PodSandboxStatusRequest(pod_sandbox_id=sandbox.id, verbose=True)
        reply = self._channel.call(
            "RuntimeService/PodSandboxStatus", request, pb.PodSandboxStatusResponse, timeout=INSPECT_TIMEOUT_SECONDS
        )
        return cri_facts.sandbox_fact(self.name, sandbox, reply)

    def _inspect_container(self, listed: cri_facts.PodContainer) -> ContainerFact:
        request = pb.ContainerStatusRequest(container_id=listed.container.id, verbose=True)
        reply = self._channel.call(
            "RuntimeService/ContainerStatus", request, pb.ContainerStatusResponse, timeout=INSPECT_TIMEOUT_SECONDS
        )
        return cri_facts.container_fact(self.name, listed, reply)

    def _image_filesystems(self) -> list[pb.FilesystemUsage]:
        reply = self._channel.call("ImageService/ImageFsInfo", pb.ImageFsInfoRequest(), pb.ImageFsInfoResponse)
        return list(reply.image_filesystems)

    def _layers_bytes(self) -> int | None:
        return cri_facts.layers_bytes(self._image_filesystems())
