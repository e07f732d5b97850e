# Types of containerd_pb2, whose classes are created at run time. A test compares them with containerd.proto.
from collections.abc import Mapping, Sequence

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import Message

DESCRIPTOR: FileDescriptor

class Empty(Message): ...

class Descriptor(Message):
    media_type: str
    digest: str
    size: int
    annotations: Mapping[str, str]

class Image(Message):
    name: str
    labels: Mapping[str, str]
    target: Descriptor

class ListImagesRequest(Message): ...

class ListImagesResponse(Message):
    images: Sequence[Image]

class CreateImageRequest(Message):
    image: Image

class Container(Message):
    id: str
    image: str

class ListContainersRequest(Message): ...

class ListContainersResponse(Message):
    containers: Sequence[Container]

class Resource(Message):
    id: str
    type: str

class Timestamp(Message):
    seconds: int

class Lease(Message):
    id: str
    created_at: Timestamp

class ListLeasesRequest(Message): ...

class ListLeasesResponse(Message):
    leases: Sequence[Lease]

class ListResourcesRequest(Message):
    id: str

class ListResourcesResponse(Message):
    resources: Sequence[Resource]

class CreateLeaseRequest(Message):
    id: str
    labels: Mapping[str, str]

class AddResourceRequest(Message):
    id: str
    resource: Resource

class DeleteLeaseRequest(Message):
    id: str
    sync: bool

class Sandbox(Message):
    sandbox_id: str

class ListSandboxesRequest(Message): ...

class ListSandboxesResponse(Message):
    list: Sequence[Sandbox]
