"""The garbage collector of a program that runs once and ends: imported before everything else, for its effect.

Importing makes some hundred thousand objects that stay. Looking through them again and again is a tenth of a start.
"""

import gc

__all__ = ["keep_all"]

# objects between two collections: traces leave no cycles behind, so looking after every 700 costs a seventh of the CPU
THRESHOLD = 20_000

gc.set_threshold(THRESHOLD, 20, 20)


def keep_all() -> None:
    """What there is stays: the collector need not look at it again, and nor need the interpreter at its end."""
    gc.freeze()
