"""Protobuf messages of CRI and containerd that are in use. The .proto files name the command that generates them."""
