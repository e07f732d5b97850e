"""The NVIDIA driver. Only this package imports `pynvml`, and none of its types leaves it.

What a card cannot tell (not supported, not permitted, too old a driver) is None. What is wrong is an error of ours:
DriverMissingError, CardLostError, StaleError, all of them NvmlError.
"""

from monitor.agent.gpu.nvml.counters import read_counters
from monitor.agent.gpu.nvml.errors import CardLostError, DriverMissingError, NvmlError, StaleError
from monitor.agent.gpu.nvml.events import XidListener
from monitor.agent.gpu.nvml.gauges import read_gauges
from monitor.agent.gpu.nvml.processes import CardProcess, read_processes
from monitor.agent.gpu.nvml.session import Card, Session, Unreadable, normal_pci

__all__ = [
    "Card",
    "CardLostError",
    "CardProcess",
    "DriverMissingError",
    "NvmlError",
    "Session",
    "StaleError",
    "Unreadable",
    "XidListener",
    "normal_pci",
    "read_counters",
    "read_gauges",
    "read_processes",
]
