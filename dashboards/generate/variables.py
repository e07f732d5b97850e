"""The choices at the top of the dashboards."""

from __future__ import annotations

from dashboards.generate.model import Variable

NODE = Variable("node", "label_values(gpuwarden_node_ready, node)")
GPU = Variable("gpu", 'label_values(gpuwarden_gpu_state{node=~"$node"}, gpu)')
USER = Variable("user", "label_values(gpuwarden_user_gpus, user)")
QUEUE = Variable("queue", "label_values(gpuwarden_queue_used_gpus, queue)")
NAMESPACE = Variable("namespace", "label_values(gpuwarden_pod_requested_gpus, namespace)")
MOUNT = Variable("mount", "label_values(gpuwarden_disk_read_only, mount)")
RECEIVER = Variable("receiver", "label_values(gpuwarden_outbox_messages, receiver)")
