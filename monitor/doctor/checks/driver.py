"""The NVIDIA driver of this node."""

from __future__ import annotations

import glob
from dataclasses import dataclass

from monitor.doctor.context import DoctorContext
from monitor.doctor.model import Check, Verdicts, ok, problem, warning

NVIDIA = "0x10de"
DISPLAY_CLASSES = ("0x0300", "0x0302")  # VGA and 3D controllers, without the programming interface


@dataclass(frozen=True)
class DriverFacts:
    """The driver according to NVML.

    `missing` says why there is none, `broken` why it does not work. `refused` and `lost` are indexes of GPUs that the
    driver counts but does not open. `on_bus` is the number of GPUs on the PCI bus; None if the bus is not visible.
    """

    missing: str | None = None
    broken: str | None = None
    version: str | None = None
    gpus: int = 0
    refused: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    on_bus: int | None = None


def judge(facts: DriverFacts) -> Verdicts:
    """A driver that does not work, and GPUs that it does not open."""
    if facts.missing is not None:
        if facts.on_bus:
            return (problem("nvml.missing", count=facts.on_bus, why=facts.missing),)
        return (ok("nvml.no-cards", why=facts.missing),)
    if facts.broken is not None:
        return (problem("nvml.broken", why=facts.broken),)
    verdicts = []
    if facts.refused:
        verdicts.append(problem("nvml.refused", cards=", ".join(map(str, facts.refused))))
    if facts.lost:
        verdicts.append(problem("nvml.lost", cards=", ".join(map(str, facts.lost))))
    counted = facts.gpus + len(facts.refused) + len(facts.lost)
    if facts.on_bus is not None and counted < facts.on_bus:
        verdicts.append(warning("nvml.fewer", count=counted, bus=facts.on_bus))
    return tuple(verdicts) or (ok("nvml.ok", driver=facts.version or "?", count=facts.gpus),)


def read(context: DoctorContext) -> DriverFacts:
    """Open the driver and count the GPUs."""
    from monitor.agent.gpu.nvml import DriverMissingError, GpuDriverError, NvmlSession  # not needed by the daemon

    on_bus = gpus_on_bus(context.config.agent.paths.sys)
    session = NvmlSession()
    try:
        with session.reading():
            unreadable = session.unreadable.items()
            return DriverFacts(
                version=session.driver_version,
                gpus=len(session.gpus),
                refused=tuple(index for index, gpu in unreadable if not gpu.lost),
                lost=tuple(index for index, gpu in unreadable if gpu.lost),
                on_bus=on_bus,
            )
    except DriverMissingError as error:
        return DriverFacts(missing=str(error), on_bus=on_bus)
    except GpuDriverError as error:
        return DriverFacts(broken=str(error), on_bus=on_bus)
    finally:
        session.close()


def gpus_on_bus(sys: str) -> int | None:
    """Number of NVIDIA GPUs on the PCI bus; None if the bus is not visible."""
    devices = glob.glob(f"{glob.escape(sys)}/bus/pci/devices/*")
    if not devices:
        return None
    return sum(
        read_text(f"{device}/vendor") == NVIDIA and read_text(f"{device}/class").startswith(DISPLAY_CLASSES)
        for device in devices
    )


def read_text(path: str) -> str:
    """Content of a small file of /proc or /sys; empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(4096).strip()
    except OSError:
        return ""


CHECKS = (Check("node.driver", read, judge, on_node=True),)
