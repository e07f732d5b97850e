"""containerd and CRI-O, asked by the Container Runtime Interface (CRI)."""

from __future__ import annotations

import time
from functools import partial

from monitor.agent.runtime import cri_facts
from monitor.agent.runtime.cri_channel import CriChannel
from monitor.agent.runtime.details import TIMEOUT, Details, Listed
from monitor.agent.runtime.proto import cri_pb2 as pb
from monitor.base.clock import Clock
from monitor.facts import ContainerFact, ImageCacheFact, RuntimeUsageFact


class CriRuntime:
    """One runtime that speaks CRI."""

    def __init__(self, socket: str, clock: Clock = time) -> None:
        self.socket = socket
        self.name = "cri"  # until it says its name
        self.root: str | None = None
        self._version: str | None = None
        self._sandbox_image: str | None = None
        self._channel = CriChannel(socket)
        self._sandboxes: Details[pb.PodSandbox] = Details(clock)
        self._containers: Details[cri_facts.InPod] = Details(clock)

    def containers(self) -> tuple[ContainerFact, ...]:
        self._meet()
        containers = self._list_containers()
        sandboxes = self._list_sandboxes()  # after the containers: the pod of each of them is there
        pods = {sandbox.id: sandbox for sandbox in sandboxes}
        in_pods = (cri_facts.InPod(container, pods.get(container.pod_sandbox_id)) for container in containers)
        # A container of CRI runs once: where a pod restarts one, the new one has an id of its own.
        return self._sandboxes.complete(
            (Listed(sandbox.id, sandbox.state, sandbox) for sandbox in sandboxes),
            self._ask_sandbox,
            partial(cri_facts.sandbox_fact, self.name),
        ) + self._containers.complete(
            (Listed(one.container.id, one.container.state, one) for one in in_pods),
            self._ask_container,
            partial(cri_facts.container_fact, self.name),
        )

    def images(self) -> ImageCacheFact:
        self._meet()
        images = self._channel.call("ImageService/ListImages", pb.ListImagesRequest(), pb.ListImagesResponse).images
        users = cri_facts.users(images, self._list_containers())  # after the images: who starts one in between is seen
        return ImageCacheFact(
            runtime=self.name,
            images=tuple(cri_facts.image_fact(image, users.get(image.id, ()), self._sandbox_image) for image in images),
            version=self._version or None,
            root=self.root,
            total_bytes=self._layers_bytes() if images else 0,
        )

    def usage(self) -> RuntimeUsageFact:
        self._meet()
        reply = self._channel.call(
            "RuntimeService/ListContainerStats", pb.ListContainerStatsRequest(), pb.ListContainerStatsResponse
        )
        return cri_facts.usage_fact(self.name, reply.stats, self._layers_bytes())

    def _meet(self) -> None:
        """See that somebody listens and, the first time, ask who. Raise NotServedError if nobody speaks CRI here."""
        self._channel.check()
        if self._version is not None:
            return
        version = self._channel.meet()
        status = self._channel.call("RuntimeService/Status", pb.StatusRequest(verbose=True), pb.StatusResponse)
        filesystems = self._image_filesystems()
        self.name = version.runtime_name
        self.root, self._sandbox_image = cri_facts.configuration(status.info, filesystems)
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

    def _ask_sandbox(self, sandbox: pb.PodSandbox) -> ContainerFact:
        request = pb.PodSandboxStatusRequest(pod_sandbox_id=sandbox.id, verbose=True)
        reply = self._channel.call(
            "RuntimeService/PodSandboxStatus", request, pb.PodSandboxStatusResponse, timeout=TIMEOUT
        )
        return cri_facts.sandbox_fact(self.name, sandbox, reply)

    def _ask_container(self, one: cri_facts.InPod) -> ContainerFact:
        request = pb.ContainerStatusRequest(container_id=one.container.id, verbose=True)
        reply = self._channel.call(
            "RuntimeService/ContainerStatus", request, pb.ContainerStatusResponse, timeout=TIMEOUT
        )
        return cri_facts.container_fact(self.name, one, reply)

    def _image_filesystems(self) -> list[pb.FilesystemUsage]:
        reply = self._channel.call("ImageService/ImageFsInfo", pb.ImageFsInfoRequest(), pb.ImageFsInfoResponse)
        return list(reply.image_filesystems)

    def _layers_bytes(self) -> int | None:
        return cri_facts.layers_bytes(self._image_filesystems())
