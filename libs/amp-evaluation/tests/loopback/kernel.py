"""Kernels that this machine doesn't run: what they lack is taken away by a system call filter."""

from __future__ import annotations

# a filter that lets one call fail as it does on a kernel without it: the test's way to such a kernel
WITHOUT_LANDLOCK = """
import ctypes, struct
def hide_landlock():
    libc = ctypes.CDLL(None, use_errno=True)
    load_number, jump_if, allow, fail = 0x20, 0x15, 0x7FFF0000, 0x00050000 | 38  # 38: ENOSYS
    code = [(load_number, 0, 0, 0), (jump_if, 0, 1, 444), (0x06, 0, 0, fail), (0x06, 0, 0, allow)]
    lines = b"".join(struct.pack("HBBI", *line) for line in code)
    buffer = ctypes.create_string_buffer(lines)
    program = struct.pack("HxxxxxxQ", len(code), ctypes.addressof(buffer))
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()
"""
