"""What can be wrong with a driver, in words of our own."""

from __future__ import annotations

import pynvml

# The card or the driver has no such thing, or this user may not see it: asking again gives the same answer.
REFUSED = frozenset({
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_NO_PERMISSION,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
})  # fmt: skip
# There is such a thing, and nothing in it right now.
EMPTY = frozenset({pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_NO_DATA, pynvml.NVML_ERROR_NOT_READY})
LOST = frozenset({pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_GPU_NOT_FOUND})
# Whatever was got from the driver before, handles too, is worth nothing any more.
VOID = frozenset({pynvml.NVML_ERROR_UNINITIALIZED, pynvml.NVML_ERROR_DRIVER_NOT_LOADED})
MISSING = frozenset({pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED})


class NvmlError(Exception):
    """The driver answered with an error."""


class DriverMissingError(NvmlError):
    """There is no driver on this node, and there has been none since this session was made."""


class StaleError(NvmlError):
    """The driver went or was replaced: nothing can be read until it is initialised again."""


class CardLostError(NvmlError):
    """The card no longer answers."""
