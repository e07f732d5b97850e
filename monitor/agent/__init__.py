"""The per-node agent: reads ONE node and tells what it saw.

May import: monitor.facts, pynvml, psutil, prometheus_client, msgspec, grpc (only where a gRPC socket is read).
May not import: kubernetes, pydantic, starlette, requests, and nothing of the daemon. It decides nothing.
"""
