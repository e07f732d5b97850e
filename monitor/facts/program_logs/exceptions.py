"""Python exceptions in a log: their lines, and the cause that name and message say."""

from __future__ import annotations

import re
from typing import NamedTuple

from monitor.facts.log_tails import LogCause as Cause
from monitor.facts.program_logs.error_texts import match_ending, match_errno, match_http, match_phrase
from monitor.facts.program_logs.evidence import Verdict, Weight
from monitor.facts.program_logs.wording import match_wording

_MAX_NAME_CHARS = 100
_NAMED = re.compile(
    r" {0,8}((?:[A-Za-z_]\w{0,60}\.){0,8}_?[A-Z]\w{0,60}?(?:Error|Exception|Interrupt|Failure|BadZipFile|Timeout|Exit))"
    r"(?:\([\w. ]{0,60}\))?(?:: ?|$)"
)
_ANY = re.compile(r"((?:[A-Za-z_]\w{0,60}\.){0,8}[A-Za-z_]\w{0,60})(?:\([\w. ]{0,60}\))?(?:: |:?$)")
_NOT_EXCEPTIONS = frozenset({"Error", "Exception", "Failure", "Timeout", "Exit"})

# By the last part of the name; the message may say more.
_NAMES = {
    "FileNotFoundError": Cause.MISSING_FILE, "PermissionError": Cause.PERMISSION,
    "ModuleNotFoundError": Cause.MISSING_MODULE, "ImportError": Cause.MISSING_MODULE,
    "PackageNotFoundError": Cause.MISSING_MODULE, "DistributionNotFound": Cause.MISSING_MODULE,
    "MemoryError": Cause.OUT_OF_MEMORY, "_ArrayMemoryError": Cause.OUT_OF_MEMORY,
    "ArrowMemoryError": Cause.OUT_OF_MEMORY, "gaierror": Cause.DNS, "NameResolutionError": Cause.DNS,
    "ConnectionRefusedError": Cause.REFUSED, "ConnectTimeout": Cause.TIMEOUT, "ReadTimeout": Cause.TIMEOUT,
    "ConnectTimeoutError": Cause.TIMEOUT, "ReadTimeoutError": Cause.TIMEOUT, "NewConnectionError": Cause.REFUSED,
    "EndpointConnectionError": Cause.TIMEOUT, "GatedRepoError": Cause.HTTP_DENIED,
    "NoCredentialsError": Cause.HTTP_DENIED, "PartialCredentialsError": Cause.HTTP_DENIED,
    "DefaultCredentialsError": Cause.HTTP_DENIED, "LocalTokenNotFoundError": Cause.HTTP_DENIED,
    "AuthenticationError": Cause.HTTP_DENIED, "RepositoryNotFoundError": Cause.HTTP_MISSING,
    "EntryNotFoundError": Cause.HTTP_MISSING, "RemoteEntryNotFoundError": Cause.HTTP_MISSING,
    "DataFilesNotFoundError": Cause.MISSING_FILE, "RevisionNotFoundError": Cause.HTTP_MISSING,
    "DatasetNotFoundError": Cause.HTTP_MISSING,
    "NVMLError_LibraryNotFound": Cause.DRIVER_NOT_LOADED, "NVMLError_GpuIsLost": Cause.GPU_LOST,
}  # fmt: skip
_SYSTEM_ERRORS = frozenset({"OSError", "IOError", "PermissionError", "FileNotFoundError", "BlockingIOError", "error"})
_NETWORK_ERRORS = (
    "ConnectionError", "MaxRetryError", "ConnectError", "ClientConnectorError", "ProxyError", "URLError", "SSLError",
    "ClientConnectionError", "OperationalError", "NewConnectionError", "LocalEntryNotFoundError", "gaierror",
    "ConnectTimeout", "ServerSelectionTimeoutError", "HfHubHTTPError", "HTTPError", "RpcError", "_InactiveRpcError",
)  # fmt: skip
_HTTP_ERRORS = (
    "HTTPError", "HfHubHTTPError", "HTTPStatusError", "ClientError", "GatedRepoError", "RepositoryNotFoundError",
    "EntryNotFoundError", "CommError", "UsageError", "APIError", "ClientResponseError", "RevisionNotFoundError",
    "DisabledRepoError", "BadRequestError", "S3Error", "S3UploadFailedError", "HttpError", "RestException",
    "MlflowException", "ApiException", "AuthenticationError", "RuntimeError", "OSError", "ValueError",
    "PermissionError", "FileNotFoundError", "ConnectionError", "RateLimitError", "NotFoundError", "OssError",
    "ServerError", "NoSuchKey", "NoSuchBucket", "DataFilesNotFoundError", "DatasetNotFoundError", "Exception",
)  # fmt: skip
# Exceptions that only say that something else has failed.
_WRAPPERS = frozenset(
    {
        "ChildFailedError", "ProcessRaisedException", "RayTaskError", "ActorDiedError", "RayActorError",
        "BrokenProcessPool", "TerminatedWorkerError", "SystemExit", "WorkerCrashedError", "CalledProcessError",
        "EngineDeadError", "AsyncEngineDeadError", "ProcessExitedException", "ExceptionGroup", "RemoteError",
        "ChildProcessError",
    }
)  # fmt: skip
_WRAPPING: tuple[str, ...] = (
    "exited unexpectedly", "see root cause above", "see stack trace for the root cause",
    "engine process failed to start",
    "returned non-zero exit status", "workers failed", "in dataloader worker process", "in replica ",
    "one or more processes failed", "cancelled because of another", "caught an exception in worker",
)  # fmt: skip
_TEARDOWN_NAMES = frozenset({"BrokenPipeError", "KeyboardInterrupt", "CancelledError", "SignalException", "EOFError"})
_PEER_MESSAGES = frozenset({"connection reset by peer", "broken pipe"})
_RENDEZVOUS = ("DistNetworkError", "DistStoreError", "RendezvousConnectionError", "RendezvousTimeoutError")


class PythonException(NamedTuple):
    """An exception line: name without module, and message."""

    name: str
    qualified: str
    message: str


def parse_exception(text: str, *, in_traceback: bool) -> PythonException | None:
    """The exception of a line. After the frames of a traceback any name is one, elsewhere only `...Error: ...`."""
    match = _NAMED.match(text)
    if match is not None and match[1] in _NOT_EXCEPTIONS and not in_traceback:
        return None
    if match is None:
        match = _ANY.match(text) if in_traceback else None
    if match is None:
        return None
    name = match[1].rpartition(".")[2]
    return PythonException(name[:_MAX_NAME_CHARS], match[1], text[match.end() :].strip())


def classify_exception(exception: PythonException, context: str = "") -> Verdict:
    """Cause of an exception. `context` is the lower-case text of the last frames of its traceback."""
    name, message = exception.name, exception.message
    lower = f"{name}: {message}".lower()
    if (wording := match_wording(lower)) and not (wording.weight is Weight.TEARDOWN and name != "SignalException"):
        # Wording in an exception is certain; only collective operations stay consequences of other processes.
        certain = Weight.FAILURE if wording.weight is Weight.WORDING else wording.weight
        return Verdict(_in_shared_memory(wording.cause, context), certain)
    if name in _WRAPPERS or any(phrase in lower for phrase in _WRAPPING):
        return Verdict(Cause.APP, Weight.WRAPPER)
    if name in _TEARDOWN_NAMES:
        return Verdict(Cause.PYTHON_EXCEPTION, Weight.TEARDOWN)
    if name in _RENDEZVOUS:
        return Verdict(match_phrase(lower) or Cause.TIMEOUT, Weight.COLLECTIVE)
    if name == "RuntimeError" and message.lower().rstrip(". ") in _PEER_MESSAGES:
        return Verdict(Cause.NCCL_PEER, Weight.NCCL_PEER)
    if name == "OutOfMemoryError":
        host = exception.qualified.startswith(("ray.", "java."))
        return Verdict(Cause.OUT_OF_MEMORY if host else Cause.CUDA_OOM, Weight.FAILURE)
    if name == "LocalEntryNotFoundError" or "couldn't connect to" in lower:  # of a hub; its cause says why
        return Verdict(match_phrase(lower) or Cause.TIMEOUT, Weight.THREAD)
    cause = _by_message(name, message, lower) or _NAMES.get(name) or Cause.PYTHON_EXCEPTION
    if name == "BlockingIOError" and "fork" in context:
        cause = Cause.PIDS_LIMIT
    return Verdict(_in_shared_memory(cause, context), Weight.FAILURE)


def _by_message(name: str, message: str, lower: str) -> Cause | None:
    """Cause by number, status or phrase in the message, where the kind of exception makes them meaningful."""
    if name == "AttributeError" and message.startswith("module '"):
        return Cause.MISSING_MODULE
    if name == "OSError" and message.startswith("PermissionError at "):
        return Cause.PERMISSION
    if name.lower() in ("timeout", "timeouterror") and "timed out" in lower:
        return Cause.TIMEOUT
    if "hfargumentparser" in lower and "not used" in lower:
        return Cause.USAGE
    if name in _NETWORK_ERRORS and (cause := match_phrase(lower) or match_errno(lower) or _connection_timeout(lower)):
        return cause
    if name in _HTTP_ERRORS and (cause := match_http(message)):
        return cause
    if name in _SYSTEM_ERRORS:
        return (
            match_errno(lower)
            or match_ending(lower)
            or (Cause.MISSING_FILE if "error no file named" in lower else None)
        )
    return match_errno(lower) or match_ending(lower)


def _connection_timeout(lower: str) -> Cause | None:
    return Cause.TIMEOUT if "timeout" in lower or "timed out" in lower else None


_SHARED_MEMORY_FRAMES = (
    "multiprocessing/heap.py",
    "multiprocessing/synchronize.py",
    "multiprocessing/shared_memory.py",
)


def _in_shared_memory(cause: Cause, context: str) -> Cause:
    """Multiprocessing keeps semaphores and arenas in /dev/shm, which the error text does not name."""
    full = cause is Cause.DISK_FULL and any(frame in context for frame in _SHARED_MEMORY_FRAMES)
    return Cause.SHM if full else cause
