"""A small job with secrets, as a program: it runs the attacking evaluator and prints what came back.

Secrets are in its environment, in its memory, in a file, in an open descriptor and behind an abstract socket. With
`--free` as the last argument the same code runs as a plain child instead: what it finds then is what there is to find.
"""

import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

from amp_evaluation.evaluators.code import code_evaluator
from amp_evaluation.isolation import Sandbox
from amp_evaluation.trace.models import Trace

source, token_file = Path(sys.argv[1]).read_text(), sys.argv[2]
token = ctypes.create_string_buffer(b"-".join([b"token", b"in", b"memory"]))
listener = socket.socket(socket.AF_UNIX)
listener.bind(f"\0amp-abstract-{os.getpid()}")
listener.listen()


def serve() -> None:
    while True:
        listener.accept()[0].sendall(b"secret-behind-a-socket")


threading.Thread(target=serve, daemon=True).start()
config = {"address": ctypes.addressof(token), "size": len(token.raw), "token_file": token_file, "parent": os.getpid()}

if sys.argv[-1] == "--free":
    call = f"\nclass EvalResult:\n def __init__(self, score, text): print(text)\nattack(None, **{config!r})"
    subprocess.run([sys.executable, "-c", source + call], check=True)
else:
    with Sandbox(time_limit_s=30, memory_mb=256) as sandbox:
        evaluator = code_evaluator(source, name="attack", config=config, level="trace", sandbox=sandbox)
        score = evaluator.run(Trace("t"))[0]
        print(score.explanation or json.dumps({"skipped": score.skip_reason}))
