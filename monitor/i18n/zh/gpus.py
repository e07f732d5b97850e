"""Chinese: amounts of GPUs, of shares of them and of other accelerators."""

from __future__ import annotations

GPUS: dict[str, str] = {
    "whole": "{amount} 张 GPU",
    "free": "{amount} 张空闲 GPU",
    "free-share": "空闲的 {amount}",
    "vgpu": "{amount} 个 vGPU",
    "shared": "{amount} 个共享 GPU",
    "gpu-or-slot": "{amount} 个整卡或共享 GPU",
    "slice": "{amount} 个 MIG 切片 {name}",
    "device": "{amount} 个 {name}",
    "other": "{amount} 的 {name}",
    "card": "一张 GPU 的 {amount}",
    "cores": "一张 GPU 算力的 {amount}",
    "memory": "{amount} 显存",
    "memory-percent": "一张 GPU 显存的 {amount}",
    "with": "{counted}（{shares}）",
    "with.other": "{amount} {name}",
    "with.card": "整卡的 {amount}",
    "with.cores": "{amount} 算力",
    "with.memory": "{amount} 显存",
    "with.memory-percent": "{amount} 显存",
    "and": "、",
    "comma": "，",
}
