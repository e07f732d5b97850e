"""Unary gRPC calls over a unix socket, for container runtimes and the kubelet, in a tenth of grpcio's memory.

`h2` implements HTTP/2; these modules add sockets, deadlines, limits and the status of a call. `channel` keeps a
connection and repeats a call whose connection was lost, `connection` is one socket, `session` is the protocol without
I/O, `response` is one response, `status` has codes and errors.

Importing `channel` costs 4 MiB of memory (3 MiB of them protobuf), so it is imported only if a socket exists.
"""
