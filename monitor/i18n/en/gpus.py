"""English: amounts of GPUs, of shares of them and of other accelerators. `.one` is for an amount of 1."""

from __future__ import annotations

GPUS: dict[str, str] = {
    "whole.one": "{amount} GPU",
    "whole": "{amount} GPUs",
    "free.one": "{amount} free GPU",
    "free": "{amount} free GPUs",
    "free-share": "{amount} free",
    "vgpu.one": "{amount} vGPU",
    "vgpu": "{amount} vGPUs",
    "shared.one": "{amount} shared GPU",
    "shared": "{amount} shared GPUs",
    "gpu-or-slot.one": "{amount} whole or shared GPU",
    "gpu-or-slot": "{amount} whole or shared GPUs",
    "slice.one": "{amount} MIG slice {name}",
    "slice": "{amount} MIG slices {name}",
    "device": "{amount} {name}",
    "other": "{amount} of {name}",
    "card": "{amount} of a GPU",
    "cores": "{amount} of the cores of a GPU",
    "memory": "{amount} of GPU memory",
    "memory-percent": "{amount} of the memory of a GPU",
    "with": "{counted} ({shares})",
    "with.other": "{amount} {name}",
    "with.card": "{amount} of a GPU",
    "with.cores": "{amount} of the cores",
    "with.memory": "{amount}",
    "with.memory-percent": "{amount} of the memory",
    "and": " and ",
    "comma": ", ",
}
