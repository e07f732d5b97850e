"""GPU protocol for NVIDIA, on NVML. No `pynvml` type leaves this package."""

from monitor.agent.gpu import DriverMissingError, GpuDriverError
from monitor.agent.gpu.nvml.events import NvmlEvents
from monitor.agent.gpu.nvml.session import NvmlSession

__all__ = ["DriverMissingError", "GpuDriverError", "NvmlEvents", "NvmlSession"]
