"""A collector's own way to the driver: initialised, cards found, and all of that again when the driver was replaced.

Each collector has a session of its own and there is no lock between them, so one that hangs in the driver holds up no
other. The driver counts initialisations and forgets old cards only when the last session has closed, which is why a
session that found its driver void stays closed until its next pass instead of opening again at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pynvml

from monitor.agent.gpu.nvml import errors
from monitor.agent.gpu.nvml.errors import CardLostError, DriverMissingError, NvmlError, StaleError
from monitor.base.clock import Clock
from monitor.facts import GpuFact

# How often a session with a card in trouble starts anew, to see whether the card is back. It is done when the wall
# clock passes a multiple of this: so all sessions are closed for a moment together, and the driver does look again.
RENEW_SECONDS = 60


class Device:
    """Something with a handle: a card, or a MIG instance of one."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.error: str | None = None
        self._refused: set[tuple[Any, ...]] = set()

    def ask(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Given a call of the binding, return its answer, or None when there is none.

        A call that was refused once is not made again in this session. An error that says nothing about the card is
        kept in `error`. Raise CardLostError or StaleError.
        """
        question = (call, arguments)
        if question in self._refused:
            return None
        try:
            return call(self.handle, *arguments)
        except pynvml.NVMLError as error:
            self._explain(question, error)
        except UnicodeDecodeError:  # a name or serial number read from a broken card
            self.error = f"{call.__name__}: not a text"
        return None

    def _explain(self, question: tuple[Any, ...], error: Any) -> None:
        if error.value in errors.REFUSED:
            self._refused.add(question)
        elif error.value in errors.LOST:
            raise CardLostError(str(error)) from None
        elif error.value in errors.VOID:
            raise StaleError(f"the NVIDIA driver was unloaded or replaced: {error}") from None
        elif error.value not in errors.EMPTY:
            self.error = f"{question[0].__name__}: {error}"


class Instance(Device):
    """A MIG instance."""

    def __init__(self, handle: Any) -> None:
        super().__init__(handle)
        self.uuid: str | None = self.ask(pynvml.nvmlDeviceGetUUID)
        self.gpu_instance: int | None = self.ask(pynvml.nvmlDeviceGetGpuInstanceId)
        self.compute_instance: int | None = self.ask(pynvml.nvmlDeviceGetComputeInstanceId)
        name = self.ask(pynvml.nvmlDeviceGetName) or ""  # "NVIDIA A100-SXM4-80GB MIG 1g.10gb"
        self.profile: str | None = name.rpartition(" MIG ")[2] if " MIG " in name else None


class Card(Device):
    """A card, with what never changes about it and what is kept between passes."""

    def __init__(self, index: int, handle: Any) -> None:
        super().__init__(handle)
        self.index = index
        self.uuid: str | None = self.ask(pynvml.nvmlDeviceGetUUID)
        self.model: str | None = self.ask(pynvml.nvmlDeviceGetName)
        self.serial: str | None = self.ask(pynvml.nvmlDeviceGetSerial)
        pci = self.ask(pynvml.nvmlDeviceGetPciInfo)
        self.pci_bus_id: str | None = normal_pci(pci.busId) if pci is not None else None
        self.lost = False
        self.sampled_until = 0  # the driver's clock, of the newest utilisation sample seen
        self.instances: tuple[Instance, ...] = ()
        self.counters: tuple[float, GpuFact] | None = None  # when they were read, and what was read

    def ask(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return super().ask(call, *arguments)
        except CardLostError:
            self.lost = True
            raise

    def find_instances(self) -> None:
        """Read anew which MIG instances the card has."""
        places = range(self.ask(pynvml.nvmlDeviceGetMaxMigDeviceCount) or 0)
        handles = [self.ask(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, place) for place in places]
        found = [Instance(handle) for handle in handles if handle is not None]
        self.instances = tuple(instance for instance in found if instance.uuid is not None)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A card that the driver counts and does not hand out. One that this user may not use is not lost."""

    error: str
    lost: bool


class Session:
    """The driver as one collector sees it. Used from one thread at a time."""

    def __init__(self, clock: Clock = time) -> None:
        self.cards: tuple[Card, ...] = ()
        self.unreadable: dict[int, Unreadable] = {}
        self.driver_version: str | None = None
        self.cuda_version: str | None = None
        self.opened = 0  # how many times: what was made under another number is void
        self.doubtful = False
        self._clock = clock
        self._is_open = False
        self._opened_at = 0.0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Open the session for one pass, if it is not open, and close it where the next pass should start anew.

        Raise DriverMissingError when the node has no driver. Raise NvmlError when there is one that does not work.
        """
        self._open()
        self.doubtful = False
        for card in self.cards:
            card.error, card.lost = None, False
        try:
            yield
        except StaleError:
            self.close()
            raise
        finally:
            if self._in_trouble() and self._clock.time() // RENEW_SECONDS != self._opened_at // RENEW_SECONDS:
                self.close()

    def close(self) -> None:
        """Give the driver back. The next pass opens the session again."""
        if self._is_open:
            self._is_open = False
            self.cards, self.unreadable = (), {}
            _call_or_none(pynvml.nvmlShutdown)

    def _open(self) -> None:
        if self._is_open:
            return
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            # A driver that was there and is gone is a fault, not a node without cards.
            if error.value in errors.MISSING and not self.opened:
                raise DriverMissingError(f"no NVIDIA driver on this node ({error})") from None
            raise NvmlError(f"the NVIDIA driver does not start: {error}") from None
        self._is_open = True
        self._opened_at = self._clock.time()
        try:
            self._find_cards()
        except (pynvml.NVMLError, StaleError) as error:
            self.close()
            raise NvmlError(f"the NVIDIA driver does not list its cards: {error}") from None
        self.opened += 1

    def _find_cards(self) -> None:
        cards = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            try:
                cards.append(Card(index, pynvml.nvmlDeviceGetHandleByIndex(index)))
            except CardLostError as error:
                self.unreadable[index] = Unreadable(str(error), lost=True)
            except pynvml.NVMLError as error:
                if error.value in errors.VOID:
                    raise
                self.unreadable[index] = Unreadable(str(error), error.value != pynvml.NVML_ERROR_NO_PERMISSION)
        self.cards = tuple(cards)
        self.driver_version = _call_or_none(pynvml.nvmlSystemGetDriverVersion)
        cuda = _call_or_none(pynvml.nvmlSystemGetCudaDriverVersion)
        self.cuda_version = f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None

    def _in_trouble(self) -> bool:
        lost = any(unreadable.lost for unreadable in self.unreadable.values())
        return lost or self.doubtful or any(card.lost or card.error for card in self.cards)


def normal_pci(text: str) -> str:
    """Given a PCI address in any common form, return it as sysfs writes it. Raise ValueError if it is none.

    NVML says 00000000:3B:00.0, the kernel log 0000:3b:00, 3b:00 or 0000:3b:00.0: all are 0000:3b:00.0.
    """
    address, _, function = text.partition(".")
    try:
        numbers = [int(part, 16) for part in address.split(":")]
        domain, bus, slot = numbers if len(numbers) == 3 else (0, *numbers)
        normal = f"{domain:04x}:{bus:02x}:{slot:02x}.{int(function or '0')}"
    except ValueError:
        raise ValueError(f"not a PCI address: {text!r}") from None
    if bus > 0xFF or slot > 0x1F:
        raise ValueError(f"not a PCI address: {text!r}")
    return normal


def _call_or_none(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except pynvml.NVMLError:
        return None
