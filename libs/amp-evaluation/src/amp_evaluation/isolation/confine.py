"""How the child locks itself in before it runs user code.

What it may read is a list of paths: the interpreter, its packages, shared libraries, certificates, time zones and the
files that name resolution needs (the network isn't restricted). It may write nothing but /dev/null, /tmp neither:
nothing would bound a disk, and what one evaluator leaves there another job may read. It may start no program.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import stat
import sys
import sysconfig
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from amp_evaluation.isolation import landlock

PASSED_VARIABLES = (
    "PATH",
    "LANG",
    "TZ",
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"),
)
"""All of the job's environment that the child gets."""

FIXED_VARIABLES = {"OPENBLAS_NUM_THREADS": "1"}  # one stack and one buffer, not one a core, in a small memory

LOAD_ALLOWANCE_BYTES = 1 << 30  # imports and module constants: apart from what evaluating may use
THREAD_STACK_BYTES = 2 << 20  # 8 MB each would let 30 threads fill the limit with stacks nobody uses

_SHARED_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
_CERTIFICATES = (
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/openssl.cnf",
    "/etc/pki/ca-trust/extracted",
    "/etc/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
)
_TIME_ZONES = ("/usr/share/zoneinfo", "/etc/localtime", "/etc/timezone")
_NAME_RESOLUTION = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/protocols",
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_CERTIFICATE_SUFFIXES = frozenset({".pem", ".crt", ".cer", *(f".{number}" for number in range(10))})

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_CAP_DAC_READ_SEARCH = 2
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def child_environment(parent: Mapping[str, str]) -> dict[str, str]:
    return {name: parent[name] for name in PASSED_VARIABLES if parent.get(name)} | FIXED_VARIABLES


def hide_memory() -> bool:
    """Make this process non-dumpable: only a process with CAP_SYS_PTRACE can read its memory and its environment.

    Also no core file is written, and a debugger of the same user can't attach.
    """
    return int(_libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)) == 0


def die_with(parent_pid: int) -> None:
    """Let the kernel kill this process when the thread that started it ends; at once when the parent has gone."""
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(0)


def lock_in() -> int:
    """Restrict this process for good; give Landlock's version, 0 where the kernel has none.

    Capabilities go in any case. One stays: reading files of other owners, which root needs where the packages belong to
    somebody else, and which opens nothing that Landlock refuses.
    """
    landlock.forbid_new_privileges()
    abi = landlock.restrict(readable_paths(os.environ), [Path("/dev/null")])
    drop_capabilities(keep=1 << _CAP_DAC_READ_SEARCH)
    return abi


def readable_paths(environment: Mapping[str, str]) -> Iterator[Path]:
    yield from _interpreter_paths()
    for path in (*_SHARED_LIBRARIES, *_CERTIFICATES, *_TIME_ZONES, *_NAME_RESOLUTION, *_DEVICES):
        yield Path(path)
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        if environment.get(name):
            yield from _certificate_files(Path(environment[name]))


def _interpreter_paths() -> Iterator[Path]:
    """The interpreter, its library and the places of its packages, but no whole prefix: /usr holds more than Python."""
    yield Path(sys.executable)
    yield Path(sys.executable).resolve()
    yield Path(sys.prefix) / "pyvenv.cfg"
    library_directory = sysconfig.get_config_var("LIBDIR")
    if library_directory:
        yield Path(library_directory)
    for entry in sys.path:
        if entry and Path(entry).resolve() != Path("/"):
            yield Path(entry)


def _certificate_files(path: Path) -> Iterator[Path]:
    """A bundle, or the certificates of a directory: one that a secret is mounted in gives its certificates only."""
    with contextlib.suppress(OSError):
        if not stat.S_ISDIR(path.stat().st_mode):
            yield path
            return
        yield from (entry for entry in path.iterdir() if entry.suffix in _CERTIFICATE_SUFFIXES)


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapabilityData(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def drop_capabilities(*, keep: int) -> None:
    """Leave this process at most the capabilities of the mask `keep`; a user who isn't root has none anyway."""
    for capability in range(64):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = _CapabilityHeader(version=_CAPABILITY_VERSION_3, pid=0)
    held = (_CapabilityData * 2)()
    _libc.capget(ctypes.byref(header), held)
    low = held[0].permitted & keep
    wanted = (_CapabilityData * 2)(_CapabilityData(low, low, 0), _CapabilityData(0, 0, 0))
    if _libc.capset(ctypes.byref(header), wanted) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"capset failed: {os.strerror(code)}")


class MemoryLimit:
    """A limit on data (heap, stacks, private maps), counted from what imports have taken.

    While a source is loaded it may use `LOAD_ALLOWANCE_BYTES` more. A limit on address space would be wrong: libraries
    reserve much more of it than they use.
    """

    def __init__(self, memory_mb: int) -> None:
        self._allowed = memory_mb << 20
        self._page_size = resource.getpagesize()
        # opened before Landlock closes /proc; it tells nothing but this process's own sizes
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        self._ceiling = self._data_bytes() + LOAD_ALLOWANCE_BYTES + self._allowed
        resource.setrlimit(resource.RLIMIT_DATA, (self._ceiling, self._ceiling))

    def for_loading(self) -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (self._ceiling, self._ceiling))

    def for_evaluating(self) -> None:
        limit = min(self._data_bytes() + self._allowed, self._ceiling)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, self._ceiling))

    def _data_bytes(self) -> int:
        return int(os.pread(self._statm, 200, 0).split()[5]) * self._page_size


def limit_resources(memory_mb: int) -> MemoryLimit:
    """No core files, small thread stacks, first in line when memory runs out, and the limit on data."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    threading.stack_size(THREAD_STACK_BYTES)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    return MemoryLimit(memory_mb)
