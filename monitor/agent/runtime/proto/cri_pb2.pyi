# Types of cri_pb2, whose classes are created at run time. A test compares them with cri.proto.
from collections.abc import Mapping, Sequence

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import Message

DESCRIPTOR: FileDescriptor

SANDBOX_READY: int
SANDBOX_NOTREADY: int
CONTAINER_CREATED: int
CONTAINER_RUNNING: int
CONTAINER_EXITED: int
CONTAINER_UNKNOWN: int

class VersionRequest(Message): ...

class VersionResponse(Message):
    runtime_name: str
    runtime_version: str

class StatusRequest(Message):
    verbose: bool

class StatusResponse(Message):
    info: Mapping[str, str]

class ListPodSandboxRequest(Message): ...

class ListPodSandboxResponse(Message):
    items: Sequence[PodSandbox]

class PodSandboxMetadata(Message):
    name: str
    uid: str
    namespace: str

class PodSandbox(Message):
    id: str
    metadata: PodSandboxMetadata
    state: int
    created_at: int
    labels: Mapping[str, str]
    annotations: Mapping[str, str]

class PodSandboxStatusRequest(Message):
    pod_sandbox_id: str
    verbose: bool

class PodSandboxStatusResponse(Message):
    info: Mapping[str, str]

class ListContainersRequest(Message): ...

class ListContainersResponse(Message):
    containers: Sequence[Container]

class ContainerMetadata(Message):
    name: str

class ImageSpec(Message):
    image: str

class Container(Message):
    id: str
    pod_sandbox_id: str
    metadata: ContainerMetadata
    image: ImageSpec
    image_ref: str
    state: int
    created_at: int
    image_id: str

class ContainerStatusRequest(Message):
    container_id: str
    verbose: bool

class ContainerStatusResponse(Message):
    status: ContainerStatus
    info: Mapping[str, str]

class ContainerStatus(Message):
    started_at: int
    finished_at: int
    exit_code: int
    image: ImageSpec
    log_path: str

class ListContainerStatsRequest(Message): ...

class ListContainerStatsResponse(Message):
    stats: Sequence[ContainerStats]

class ContainerAttributes(Message):
    id: str

class ContainerStats(Message):
    attributes: ContainerAttributes
    writable_layer: FilesystemUsage

class ListImagesRequest(Message): ...

class ListImagesResponse(Message):
    images: Sequence[Image]

class Image(Message):
    id: str
    repo_tags: Sequence[str]
    repo_digests: Sequence[str]
    size: int
    pinned: bool

class ImageStatusRequest(Message):
    image: ImageSpec
    verbose: bool

class ImageStatusResponse(Message):
    info: Mapping[str, str]

class RemoveImageRequest(Message):
    image: ImageSpec

class RemoveImageResponse(Message): ...
class ImageFsInfoRequest(Message): ...

class ImageFsInfoResponse(Message):
    image_filesystems: Sequence[FilesystemUsage]

class FilesystemIdentifier(Message):
    mountpoint: str

class UInt64Value(Message):
    value: int

class FilesystemUsage(Message):
    timestamp: int
    fs_id: FilesystemIdentifier
    used_bytes: UInt64Value
