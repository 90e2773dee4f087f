"""User code runs in a child process that has locked itself in.

`Sandbox` is the job's side of it. What it protects from is code of an evaluators list that

- reads the job's secrets: the child is a fresh interpreter with a short list of variables and no descriptors, may open
  the interpreter, its packages, shared libraries, certificates, time zones and the files of name resolution only
  (Landlock), has no capabilities, and can't look into other processes; the job itself can't be dumped any more;
- writes files (anywhere, /tmp included) or starts programs;
- hangs, floods the log, takes too much memory, crashes or leaves: each costs its own item.

What it doesn't protect from: the network is not restricted; code may ask the job's models, a hundred times an item;
evaluators of one list share the child, see each other and could answer for each other; the existence and the size of
files can be asked for; sockets with a path in a directory can be connected to; signals to the job are refused from
Linux 6.12 on only; a process that user code forks and moves to a session of its own outlives the child's end; a bug in
the kernel is a way out. Without Landlock (before Linux 5.13, or switched off) files of the job's user and environments
of its other processes are open: one WARN says so. It is no container.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amp_evaluation.isolation.sandbox import Remote, Sandbox

__all__ = ["Remote", "Sandbox"]


def __getattr__(name: str) -> Any:
    """The job's side, loaded on first use: the child imports this package too and doesn't need it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("amp_evaluation.isolation.sandbox"), name)
