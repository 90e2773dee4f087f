"""Landlock through ctypes: what this process may open from now on, for good.

The kernel's own documentation (userspace-api/landlock) is the source of every number here. A restriction holds for the
calling thread and everything it starts; it can't be lifted, by root neither. Beside files it takes away, in every
version: mounting, and looking into processes outside of the domain (ptrace, process_vm_readv, /proc/PID/mem and
/proc/PID/environ).
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# The three calls have the same numbers on every architecture (they are newer than the unified table).
_SYS_CREATE_RULESET = 444
_SYS_ADD_RULE = 445
_SYS_RESTRICT_SELF = 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

EXECUTE = 1 << 0
WRITE_FILE = 1 << 1
READ_FILE = 1 << 2
READ_DIR = 1 << 3
REFER = 1 << 13
TRUNCATE = 1 << 14
IOCTL_DEV = 1 << 15
_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

SCOPE_ABSTRACT_UNIX_SOCKET = 1 << 0
SCOPE_SIGNAL = 1 << 1


class LandlockError(OSError):
    """The kernel has Landlock and refused: nothing is protected, so nothing may run."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What one version of the interface can take away."""

    files: int
    """Rights on files that are refused unless a path grants them."""
    scopes: int
    """Ways out of the domain that are closed: abstract sockets, signals."""
    attribute_size: int
    """Bytes of `struct landlock_ruleset_attr` that this version knows; more would be refused."""


def rules_of(abi: int) -> Rules:
    """The strictest set that version `abi` knows (1 is Linux 5.13, 6 is Linux 6.12)."""
    files = (1 << 13) - 1
    for since, right in ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)):
        if abi >= since:
            files |= right
    scopes = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL if abi >= 6 else 0
    return Rules(files=files, scopes=scopes, attribute_size=24 if abi >= 6 else 16 if abi >= 4 else 8)


class _RulesetAttr(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),  # stays 0: the network isn't restricted
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneathAttr(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


_libc = ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: object) -> int:
    result: int = _libc.syscall(ctypes.c_long(number), *arguments)
    return result


def abi_version() -> int:
    """The interface's version, 0 where the kernel has none, has it switched off, or a filter hides it."""
    return max(0, _call(_SYS_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_CREATE_RULESET_VERSION)))


def restrict(readable: Iterable[Path], writable: Iterable[Path] = ()) -> int:
    """Let this thread open only what lies beneath the given paths; give the interface's version, 0: not restricted.

    Paths that don't exist, or can't be reached, are passed over: they can't be read anyway. Symbolic links are
    followed now, once.
    """
    abi = abi_version()
    if abi == 0:
        return 0
    rules = rules_of(abi)
    ruleset = _create_ruleset(rules)
    try:
        for path in readable:
            _allow(ruleset, path, (READ_FILE | READ_DIR) & rules.files)
        for path in writable:
            _allow(ruleset, path, (READ_FILE | WRITE_FILE) & rules.files)
        forbid_new_privileges()
        _check(_call(_SYS_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)), "landlock_restrict_self")
    finally:
        os.close(ruleset)
    return abi


def forbid_new_privileges() -> None:
    """Setuid programs give nothing any more; also the kernel's condition for restricting oneself without being root."""
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)")


def _create_ruleset(rules: Rules) -> int:
    attributes = _RulesetAttr(handled_access_fs=rules.files, scoped=rules.scopes)
    size = ctypes.c_size_t(rules.attribute_size)
    return _check(
        _call(_SYS_CREATE_RULESET, ctypes.byref(attributes), size, ctypes.c_uint32(0)), "landlock_create_ruleset"
    )


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            rights &= _FILE_RIGHTS  # the kernel refuses rights on directories for anything else
        beneath = _PathBeneathAttr(allowed_access=rights, parent_fd=handle)
        arguments = (
            ctypes.c_int(ruleset),
            ctypes.c_int(_RULE_PATH_BENEATH),
            ctypes.byref(beneath),
            ctypes.c_uint32(0),
        )
        _check(_call(_SYS_ADD_RULE, *arguments), f"landlock_add_rule for {os.fspath(path)!r}")
    finally:
        os.close(handle)


def _check(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise LandlockError(code, f"{what} failed: {os.strerror(code)}")
    return result
