"""GPU drivers: devices, processes and error events. NVML is the first implementation."""
