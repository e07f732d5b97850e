# ruff: noqa: E501  # tables: one row is one line
"""Classes of log tails: the rows of the corpus, and wording of programs that the corpus does not have."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.agent.log_tail import classify_log
from monitor.agent.log_tail.files import TAIL_CHARS
from monitor.facts.log_tails import LogCause
from tests.explain.corpus_rows import CORPUS_DIR, CorpusRow, load_classes, load_rows

CLASSES = load_classes()
ROWS = load_rows(CORPUS_DIR / "logs.tsv", CLASSES)
TB = 'Traceback (most recent call last):\n  File "/w/train.py", line 1, in <module>\n    main()\n'
TAIL_SECONDS = 1.0  # a tail takes milliseconds; a quadratic pattern would take minutes


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.line}-{row.expect[0]}" for row in ROWS])
def test_rows_of_the_corpus(row: CorpusRow) -> None:
    found = classify_log(row.messages[0])
    assert found.name.value in row.expect
    assert found.line is None if not row.subject else found.line and found.line in row.messages[0]


def test_the_corpus_is_proved_by_the_expected_lines() -> None:
    """A different line of the same error is acceptable, but should be rare."""
    proved = [row for row in ROWS if (classify_log(row.messages[0]).line or "").strip() == row.subject.strip()]
    assert len(proved) >= 0.95 * len(ROWS)


def test_every_class_is_one_of_the_corpus() -> None:
    assert {cause.value for cause in LogCause} <= {name for name, known in CLASSES.items() if "log" in known.kinds}


CASES = [
    ("cuda-oom",TB+"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB"),
    ("cuda-oom",TB+"RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"),
    ("cuda-oom",TB+"RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ("cuda-oom","2026 E external/local_xla/xla/stream_executor/cuda/cuda_driver.cc:1018] failed to allocate 15.66GiB (16816209920 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory"),
    ("cuda-oom",TB+"ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."),
    ("cuda-oom","(EngineCore_0 pid=123) ERROR 03-02 11:20:41 [core.py:718] EngineCore failed to start.\n(EngineCore_0 pid=123) ERROR 03-02 11:20:41 [core.py:718] Traceback (most recent call last):\n(EngineCore_0 pid=123) ERROR 03-02 11:20:41 [core.py:718]   File \"/x.py\", line 1, in f\n(EngineCore_0 pid=123) ERROR 03-02 11:20:41 [core.py:718] torch.OutOfMemoryError: CUDA out of memory. Tried\n"+TB+"RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_0': 1}"),
    ("cuda-illegal-access","terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: an illegal memory access was encountered\nException raised from c10_cuda_check_implementation at ../c10/cuda/CUDAException.cpp:44 (most recent call first):\nframe #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x57 (0x7f in /opt/conda/lib/libc10.so)\nAborted (core dumped)"),
    ("cuda-assert","/pytorch/aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [3,0,0] Assertion `t >= 0 && t < n_classes` failed.\n"+TB+"RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`"),
    ("gpu-error",TB+"RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR"),
    ("gpu-ecc","[rank3]: RuntimeError: CUDA error: uncorrectable ECC error encountered"),
    ("driver-too-old",TB+"RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain."),
    ("driver-too-old","CUDA driver version is insufficient for CUDA runtime version"),
    ("driver-mismatch","2024 E tensorflow/compiler/xla/stream_executor/cuda/cuda_diagnostics.cc:312] kernel version 535.129.3 does not match DSO version 535.161.7 -- cannot find working devices in this configuration"),
    ("driver-not-loaded",TB+"ImportError: libcuda.so.1: cannot open shared object file: No such file or directory"),
    ("driver-not-loaded","NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running."),
    ("driver-not-loaded",TB+"RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a CPU-only machine, please use torch.load with map_location"),
    ("gpu-lost","Unable to determine the device handle for GPU 0000:41:00.0: Unknown Error"),
    ("cuda-arch",TB+"RuntimeError: FlashAttention only supports Ampere GPUs or newer."),
    ("shm","python: bus error\nBus error (core dumped)"),
    ("shm",TB+"RuntimeError: unable to write to file </torch_18692_1954506624>"),
    ("shm",TB+"RuntimeError: unable to mmap 1568 bytes from file </torch_12_3>: Cannot allocate memory (12)"),
    ("shm",'Traceback (most recent call last):\n  File "/usr/lib/python3.10/multiprocessing/context.py", line 68, in Lock\n    return Lock(ctx=self.get_context())\n  File "/usr/lib/python3.10/multiprocessing/synchronize.py", line 57, in __init__\n    sl = self._semlock = _multiprocessing.SemLock(\nOSError: [Errno 28] No space left on device'),
    ("shm","OSError: [Errno 28] No space left on device: '/dev/shm/ray'"),
    ("open-files",TB+"RuntimeError: unable to open shared memory object </torch_1_2> in read-write mode: Too many open files (24)"),
    ("open-files",TB+"RuntimeError: received 0 items of ancdata"),
    ("pids-limit",TB+"RuntimeError: can't start new thread"),
    ("pids-limit","OpenBLAS blas_thread_init: pthread_create failed for thread 63 of 64: Resource temporarily unavailable"),
    ("pids-limit","Traceback (most recent call last):\n  File \"/usr/lib/python3.11/subprocess.py\", line 1, in _execute_child\n    self.pid = _fork_exec(\nBlockingIOError: [Errno 11] Resource temporarily unavailable"),
    ("out-of-memory","/bin/sh: line 1:    17 Killed                  python train.py"),
    ("out-of-memory","step 1\nKilled"),
    ("out-of-memory",TB+"MemoryError"),
    ("out-of-memory",TB+"OSError: [Errno 12] Cannot allocate memory"),
    ("out-of-memory",TB+"RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes. Error code 12 (Cannot allocate memory)"),
    ("out-of-memory","terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc"),
    ("out-of-memory","[2026-03-02 11:20:41,884] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 210\n[2026-03-02 11:20:41,884] [ERROR] [launch.py:325:sigkill_handler] ['/usr/bin/python3', '-u', 'train.py', '--local_rank=7'] exits with return code = -9"),
    ("out-of-memory",TB+"torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGKILL"),
    ("out-of-memory","mpirun noticed that process rank 3 with PID 0 on node train-worker-1 exited on signal 9 (Killed)."),
    ("out-of-memory",TB+"ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."),
    ("out-of-memory",TB+"RuntimeError: DataLoader worker (pid 1873) is killed by signal: Killed.\n\nThe above exception was the direct cause of the following exception:\n\n"+TB+"RuntimeError: DataLoader worker (pid(s) 1873) exited unexpectedly"),
    ("segfault","ERROR: Unexpected segmentation fault encountered in worker.\n"+TB+"RuntimeError: DataLoader worker (pid 99) is killed by signal: Segmentation fault. "),
    ("segfault","train.sh: line 5:   123 Segmentation fault      (core dumped) python train.py"),
    ("segfault","*** SIGSEGV received at time=1700000 on cpu 3 ***"),
    ("segfault","  exitcode  : -11 (pid: 44)\nRoot Cause (first observed failure):\n[0]:\n  time      : x\n  host      : a\n  rank      : 0 (local_rank: 0)\n  exitcode  : -11 (pid: 3)\n  error_file: <N/A>\n  traceback : Signal 11 (SIGSEGV) received by PID 3"),
    ("nccl-timeout",TB+"torch.distributed.DistBackendError: [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800012 milliseconds before timing out."),
    ("nccl-timeout","[E ProcessGroupNCCL.cpp:475] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=11)\n[E ProcessGroupNCCL.cpp:489] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.\n[E ProcessGroupNCCL.cpp:495] To avoid data inconsistency, we are taking the entire process down.\nterminate called after throwing an instance of 'std::runtime_error'\n  what():  [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=11"),
    ("nccl-timeout",TB+"RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete"),
    ("nccl-peer",TB+"RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.5]:4567"),
    ("nccl-peer",TB+"torch.distributed.DistBackendError: [2] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: Connection reset by peer"),
    ("nccl-cuda",TB+"torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1691, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.19.3\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 999 'unknown error'"),
    ("nccl",TB+"torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1, invalid usage, NCCL version 2.19.3\nncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\nDuplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000"),
    ("nccl-system",TB+"torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.19.3\nncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.\nLast error:\nsocketStartConnect: Connect to 10.0.0.31<47123> failed : Software caused connection abort"),
    ("python-exception","[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/w/train.py\", line 1, in <module>\n[rank1]: ValueError: bad batch\n[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/w/t.py\", line 1, in <module>\n[rank0]: torch.distributed.DistBackendError: NCCL error in: x, remote process exited or there was a network error, NCCL version 2.19\n"),
    ("timeout",TB+"torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined."),
    ("refused","[W socket.cpp:601] [c10d] The client socket has failed to connect to [train-master-0]:29500 (errno: 111 - Connection refused).\n"+TB+"torch.distributed.DistNetworkError: The client socket has failed to connect to any network address of (train-master-0, 29500)."),
    ("dns","[W socket.cpp:697] [c10d] The IPv6 network addresses of (train-master-0, 23456) cannot be retrieved (gai error: -2 - Name or service not known).\n"+TB+"torch.distributed.DistNetworkError: The client socket has failed to connect to any network address of (train-master-0, 23456)."),
    ("missing-file","cat: /data/list.txt: No such file or directory"),
    ("missing-file","/entrypoint.sh: line 3: torchrun: command not found"),
    ("missing-file",TB+"OSError: Error no file named pytorch_model.bin, model.safetensors, tf_model.h5 found in directory /models/llama."),
    ("missing-file",TB+"tensorflow.python.framework.errors_impl.NotFoundError: /data/train.tfrecord; No such file or directory"),
    ("missing-file",TB+"omegaconf.errors.X: foo\n\nDuring handling of the above exception, another exception occurred:\n\n"+TB+"FileNotFoundError: [Errno 2] No such file or directory: 'conf.yaml'"),
    ("permission","mkdir: cannot create directory '/outputs': Permission denied"),
    ("permission",TB+"OSError: [Errno 13] Permission denied: '/root/.cache/huggingface'"),
    ("permission","chown: changing ownership of '/data': Operation not permitted"),
    ("read-only",TB+"OSError: [Errno 30] Read-only file system: '/app/out'"),
    ("disk-full",TB+"safetensors_rust.SafetensorError: Error while serializing: IoError(Os { code: 28, kind: StorageFull, message: \"No space left on device\" })"),
    ("disk-full",TB+"RuntimeError: [enforce fail at inline_container.cc:319] . unexpected pos 9664 vs 9558"),
    ("disk-full","cp: error writing '/scratch/x': No space left on device"),
    ("disk-quota","cp: error writing 'x': Disk quota exceeded"),
    ("storage-io","dd: error reading '/data/x': Input/output error"),
    ("mount-dead","ls: cannot access '/jfs': Transport endpoint is not connected"),
    ("missing-module",TB+"ImportError: Using `bitsandbytes` 8-bit quantization requires Accelerate: `pip install accelerate`"),
    ("missing-module","/usr/bin/python3: No module named torch.distributed.run"),
    ("missing-symbol",TB+"ImportError: /opt/conda/lib/python3.10/site-packages/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZN2at4_ops5zeros4callEN3c108ArrayRefINS2_6SymIntEEE"),
    ("missing-symbol","./serve: error while loading shared libraries: libnccl.so.2: cannot open shared object file: No such file or directory"),
    ("missing-symbol",TB+"OSError: libcudart.so.11.0: cannot open shared object file: No such file or directory"),
    ("missing-symbol","Could not load library libcudnn_cnn_infer.so.8. Error: libnvrtc.so: cannot open shared object file: No such file or directory"),
    ("http-denied",TB+"urllib.error.HTTPError: HTTP Error 403: Forbidden"),
    ("http-denied",TB+"botocore.exceptions.NoCredentialsError: Unable to locate credentials"),
    ("http-denied",TB+"botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the PutObject operation: Access Denied"),
    ("http-denied","fatal: Authentication failed for 'https://git.example.com/team/x.git/'"),
    ("http-denied",TB+"OSError: You are trying to access a gated repo.\nMake sure to have access to it at https://huggingface.co/x.\n401 Client Error."),
    ("http-missing",TB+"botocore.errorfactory.NoSuchKey: An error occurred (NoSuchKey) when calling the GetObject operation: The specified key does not exist."),
    ("http-missing",TB+"huggingface_hub.errors.EntryNotFoundError: 404 Client Error. (Request ID: Root=1)\n\nEntry Not Found for url: https://huggingface.co/x"),
    ("http-missing","curl: (22) The requested URL returned error: 404"),
    ("http-missing","wget: server returned error: HTTP/1.1 404 Not Found"),
    ("http-error",TB+"aiohttp.client_exceptions.ClientResponseError: 503, message='Service Unavailable', url=URL('https://x')"),
    ("rate-limited",TB+"requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://x"),
    ("dns","curl: (6) Could not resolve host: huggingface.co"),
    ("dns",TB+"requests.exceptions.ConnectionError: (MaxRetryError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /x (Caused by NameResolutionError('<urllib3>: Failed to resolve x'))\"), '(Request ID: 1)')\n\nThe above exception was the direct cause of the following exception:\n\n"+TB+"huggingface_hub.errors.LocalEntryNotFoundError: An error happened while trying to locate the file on the Hub and we cannot find the requested files in the local cache. Please check your connection and try again or make sure your Internet connection is on.\n\nThe above exception was the direct cause of the following exception:\n\n"+TB+"OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files."),
    ("timeout",TB+"requests.exceptions.ConnectTimeout: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: / (Caused by ConnectTimeoutError(<urllib3>, 'Connection to huggingface.co timed out. (connect timeout=10)'))"),
    ("timeout",TB+"urllib.error.URLError: <urlopen error [Errno 101] Network is unreachable>"),
    ("timeout",TB+"requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='huggingface.co', port=443): Read timed out. (read timeout=10)"),
    ("refused",TB+"urllib.error.URLError: <urlopen error [Errno 111] Connection refused>"),
    ("refused","psql: error: connection to server at \"db\" (10.0.0.1), port 5432 failed: Connection refused"),
    ("refused",TB+"redis.exceptions.ConnectionError: Error 111 connecting to redis:6379. Connection refused."),
    ("usage","usage: torchrun [-h]\ntorchrun: error: argument --nnodes: invalid int value: 'two'"),
    ("usage","Error: No such option: --lr"),
    ("usage",TB+"ValueError: Some specified arguments are not used by the HfArgumentParser: ['--foo', '1']"),
    ("python-exception",TB+"AssertionError"),
    ("python-exception",TB+"queue.Empty"),
    ("python-exception",TB+"zipfile.BadZipFile: File is not a zip file"),
    ("python-exception",TB+"json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)"),
    ("python-exception",TB+"RuntimeError: Error(s) in loading state_dict for GPT:\n\tMissing key(s) in state_dict: \"lm_head.weight\"."),
    ("python-exception",TB+"RuntimeError: The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1"),
    ("python-exception",TB+"RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"),
    ("python-exception",TB+"RuntimeError: Caught KeyError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n  File \"/x\", line 1, in f\n    data = x\nKeyError: 'image'"),
    ("python-exception",TB+"KeyError: 'x'\nException ignored in: <function Pool.__del__ at 0x7f>\n"+TB+"AttributeError: 'NoneType' object has no attribute 'x'"),
    ("python-exception","  traceback : Traceback (most recent call last):\n    File \"/x.py\", line 3, in wrapper\n      return f(*args, **kwargs)\n  IndexError: list index out of range\n  \n============"),
    ("python-exception",TB+"pydantic_core._pydantic_core.ValidationError: 1 validation error for Config\nlr\n  Field required [type=missing]"),
    ("python-exception",TB+"requests.exceptions.SSLError: HTTPSConnectionPool(host='x', port=443): Max retries exceeded with url: / (Caused by SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)')))"),
    ("unknown","step 1\nstep 2\nepoch 3 done"),
    ("unknown","WARNING retry: connection refused\nINFO shutting down\nbye"),
    ("unknown",""),
    ("sigterm","Traceback (most recent call last):\n  File \"/x\", line 1, in f\n    a\ntorch.distributed.elastic.multiprocessing.api.SignalException: Process 1 got signal: 15"),
    ("rank-failed","ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 12) of binary: /opt/conda/bin/python"),
    ("not-executable","/app/run: cannot execute binary file: Exec format error"),
]  # fmt: skip


@pytest.mark.parametrize(("cause", "tail"), CASES, ids=[f"{number}-{case[0]}" for number, case in enumerate(CASES)])
def test_wording(cause: str, tail: str) -> None:
    assert classify_log(tail).name.value == cause


PROGRESS = "".join(f"step {number} loss 0.{number}\n" for number in range(10, 14))
DECISIONS = [
    ("an exception that the program handled", TB + "KeyError: 'x'\n" + PROGRESS, ("unknown", None, None)),
    ("a handled exception, then a crash", TB + "KeyError: 'x'\n" + PROGRESS + "Killed\n", ("out-of-memory", None, None)),
    ("the last of two exceptions", TB + "ValueError: a\n\nDuring handling of the above exception, another exception occurred:\n\n" + TB + "KeyError: 'b'\n", ("python-exception", "KeyError", None)),
    ("the cause of a vague exception", TB + "FileNotFoundError: [Errno 2] No such file or directory: 'x'\n\nThe above exception was the direct cause of the following exception:\n\n" + TB + "RuntimeError: cannot load\n", ("missing-file", "FileNotFoundError", None)),
    ("a thread's exception before the program's", "Exception in thread Thread-1:\n" + TB + "OSError: [Errno 28] No space left on device\n" + TB + "KeyError: 'x'\n", ("python-exception", "KeyError", None)),
    ("the first rank, not the last", "[rank1]: " + TB.replace("\n", "\n[rank1]: ") + "ValueError: bad\n[rank0]: " + TB.replace("\n", "\n[rank0]: ") + "TypeError: other\n", ("python-exception", "ValueError", 1)),
    ("the rank that the launcher names", "[rank0]: " + TB.replace("\n", "\n[rank0]: ") + "TypeError: other\n[rank1]: " + TB.replace("\n", "\n[rank1]: ") + "ValueError: bad\nRoot Cause (first observed failure):\n[0]:\n  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 2)\n", ("python-exception", "ValueError", 1)),
    ("Ray's prefix", "(TrainWorker pid=17, ip=10.0.0.3) " + TB.replace("\n", "\n(TrainWorker pid=17, ip=10.0.0.3) ") + "KeyError: 'x'\n", ("python-exception", "KeyError", None)),
    ("escape sequences", "\x1b[31mKeyError\x1b[0m: 'x'\n", ("python-exception", "KeyError", None)),
    ("a structured log", '{"level":"error","message":"Traceback (most recent call last):\\n  File x\\nKeyError: 1"}', ("python-exception", "KeyError", None)),
    ("Chinese error texts", "cp: 写入 '/scratch/x' 时出错: 设备上没有空间\n", ("disk-full", None, None)),
    ("a warning with an error's words", "WARNING: CUDA out of memory, retrying with a smaller batch\ndone\n", ("unknown", None, None)),
    ("words of another error in the program's own message", TB + "ValueError: table of files: permission denied is not a valid column\n", ("python-exception", "ValueError", None)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "tail", "expected"), DECISIONS, ids=[case[0] for case in DECISIONS])
def test_decisions(name: str, tail: str, expected: tuple[str, str | None, int | None]) -> None:
    found = classify_log(tail)
    assert (found.name.value, found.exception, found.rank) == expected


FRAGMENTS = st.sampled_from(
    [TB, "KeyError: 'x'", "\r", "\n", "  rank      : 3", "Root Cause (first observed failure):", "[rank1]: ", "NCCL WARN ",
     "Killed", "\x1b[31m", "a.b.c.", "Error", ": ", "[Errno 28]", "/dev/shm", "(", "worker-0: ", "\x00", "错误", "999 Client Error",
     "An error occurred (", "exits with return code = -", "process rank 1 ", "9" * 40]
)  # fmt: skip


@settings(max_examples=300)
@given(st.one_of(st.text(max_size=2000), st.lists(FRAGMENTS, max_size=60).map("".join)))
def test_any_text_has_a_class(tail: str) -> None:
    found = classify_log(tail)
    assert found.line is None or len(found.line) <= len(tail)
    assert (found.line is None) == (found.name is LogCause.UNKNOWN)


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        " ",
        "[",
        "a.",
        "A",
        "9",
        "Error: ",
        "(pid=1",
        "\n",
        "KeyError: x\n",
        "1/1 [",
        "://a:b",
        '  File "x"\n',
        "a-0: ",
        "step 1 loss\n",
        "\x1b[",
    ],
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    tail = (piece * (TAIL_CHARS // len(piece) + 1))[:TAIL_CHARS]
    started = time.process_time()
    classify_log(tail)
    assert time.process_time() - started < TAIL_SECONDS
