"""The messages of the Container Runtime Interface that are read here. `cri.proto` says how `cri_pb2.py` is made."""
