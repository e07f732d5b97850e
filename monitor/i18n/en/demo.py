"""English: the guide of the demo, on the page and in the terminal."""

from __future__ import annotations

_TERMINAL = {
    "begin": "A simulated cluster: {nodes:node|nodes}, {gpus:GPU|GPUs}; {count:scene|scenes} within {length:duration}.",
    "page": "page     {url}",
    "robot": "WeCom    {url}   what the group's robot received",
    "command": "command  {variables} gpuwarden alerts list",
    "scene": "[{number}/{total}] {title}",
    "now": "  now        {text}",
    "says": "  gpuwarden  {text}",
    "look": "  look       {text} {url}",
    "next": "  next       in {seconds:duration}: {title}",
    "end": "The page stays until you press Ctrl-C. To see the scenes again, start the demo again.",
}

_SCENES = {
    "calm.title": "An ordinary day",
    "calm.now": "Six users train their models. Nothing is wrong.",
    "calm.says": "The cluster is healthy; its last seven days, with five outages that are over, are on record.",
    "calm.look": "Open a node and set its charts to 7 d.",
    "registry.title": "Two nodes lose the image registry",
    "registry.now": "Two nodes cannot resolve the registry's name, so four new pods cannot pull their images.",
    "registry.says": (
        'The alert "{alert}" fires within seconds. It names cause and nodes; the pods are only its symptoms.'
    ),
    "registry.look": "Open the alert, and read the same in the WeCom group.",
    "zombie.title": "A finished job keeps its GPUs",
    "zombie.now": "The job bert-large of zhang has finished, but its processes still hold two GPUs.",
    "zombie.says": (
        'The alert "{alert}" fires after some seconds: Kubernetes counts these GPUs as free, gpuwarden sees who holds '
        "them."
    ),
    "zombie.look": "Ask why about the pod; signed in, you can release its GPUs.",
    "notebook.title": "A notebook that does nothing",
    "notebook.now": "wang has started a notebook with a GPU and does not use it.",
    "notebook.says": 'The alert "{alert}" fires within a minute; in a real cluster after half an hour.',
    "notebook.look": "See what wang holds and how much of it was used in seven days.",
    "no-room.title": "A job that fits no node",
    "no-room.now": "zhang submits a job with 8 GPUs. There are enough free GPUs, but not on one node.",
    "no-room.says": 'The alert "{alert}" fires after some seconds and lists the free GPUs of each node.',
    "no-room.look": "Ask why the job waits.",
    "disk.title": "Images fill a disk",
    "disk.now": "The disk of images of one node grows past 80%.",
    "disk.says": (
        'The alert "{alert}" fires, and at once the policy node-images removes images that no pod uses, until the disk '
        "is below 60%."
    ),
    "disk.look": "See the cleanup: what it removed, and what it kept and why.",
    "image.title": "A 59 GiB image",
    "image.now": "zhao has saved a whole environment as an image of 59 GiB.",
    "image.says": 'The alert "{alert}" names its node and size: such an image takes minutes to pull.',
    "image.look": "Open the alert.",
    "shm.title": "Shared memory runs out",
    "shm.now": "The job detr of li has 64 MiB of shared memory, and its data loaders have filled it.",
    "shm.says": 'The alert "{alert}" fires before the job fails with a bus error, and names the setting to change.',
    "shm.look": "Open the pod.",
    "portal.title": "The portal answers 502",
    "portal.now": "The web portal of the platform answers every request with 502 Bad Gateway.",
    "portal.says": 'The critical alert "{alert}" fires after some seconds.',
    "portal.look": "Open the alert; signed in, you can say that you take care of it.",
    "node.title": "A node is down",
    "node.now": "One node answers neither Kubernetes nor gpuwarden.",
    "node.says": 'The critical alert "{alert}" stands for the node and all its pods.',
    "node.look": "Open the node: its charts stop where it was last seen.",
    "deletion.title": "Data disappears",
    "deletion.now": "60 TiB disappear from the shared file system within seconds.",
    "deletion.says": 'The critical alert "{alert}" fires at once: how much is gone, and since when.',
    "deletion.look": "See the disk on its chart.",
    "recovery.title": "The last outage is over",
    "recovery.now": "The data is back; the other outages have ended as well.",
    "recovery.says": "An alert is resolved half a minute after its problem was last seen; the group gets one message.",
    "recovery.look": "Watch the alerts disappear.",
    "healthy.title": "Healthy again",
    "healthy.now": "All outages are over.",
    "healthy.says": "All their alerts are resolved. For your own cluster, run: gpuwarden init",
    "healthy.look": "See what happened in the report.",
}

WORDS = {f"demo.{key}": text for key, text in (_TERMINAL | _SCENES).items()} | {
    "login-link": "to act   {url}   (once, within an hour)",
    "page.guide.scene": "Demo {number}/{total}",
    "page.guide.body": "{now} {says}",
    "page.guide.next": "Next: {title}",
    "page.guide.hide": "Hide the guide",
    "page.guide.show": "Guide",
}
