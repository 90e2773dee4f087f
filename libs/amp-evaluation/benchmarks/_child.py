"""Run one command and print its cost as JSON. Started without site packages, so that it is small.

`ru_maxrss` of a program starts at the size of the process that started it: a large parent would hide a small child.
"""

import json
import os
import subprocess
import sys
import time

begin = time.perf_counter()
with open(sys.argv[1], "wb") as log:  # noqa: PTH123 - pathlib would make this process larger
    process = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=log)
    _, status, usage = os.wait4(process.pid, 0)
print(
    json.dumps(
        {
            "wall_s": time.perf_counter() - begin,
            "cpu_s": usage.ru_utime + usage.ru_stime,
            "peak_mb": usage.ru_maxrss / 1024,
            "exit": os.waitstatus_to_exitcode(status),
        }
    )
)
