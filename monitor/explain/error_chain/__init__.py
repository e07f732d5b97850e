"""Error chains of container runtimes, registries, mount helpers and schedulers: parsed into clauses, then classified.

A message passes through several programs, and each prepends what it tried: `kubelet: containerd: resolver: HTTP
request: dial: errno`. The cause is said by the last speaker; a fragment such as "not found" means something else in the
mouth of a registry, a snapshotter or a shell. `parse` splits the message, and the other modules decide per domain: by
speaker, then by status code, then by wording.
"""
