"""User code runs in a child process that has locked itself in.

`Sandbox` is the job's side of it. What it protects from: code of an evaluators list that reads the job's secrets
(environment, memory, files, service account tokens), writes files, starts programs, hangs, takes too much memory,
crashes. What it doesn't: the network isn't restricted, evaluators of one list share the child and see each other, the
existence and size of files can be asked for, and a bug in the kernel is a way out. It is no container.
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
