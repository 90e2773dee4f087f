"""CPU seconds of `json.loads` over the pages that the job fetches: the unit of all CPU figures.

python _json_cost.py KIND TRACES PAGE_SIZE
"""

import json
import sys
import time

from loopback.__main__ import KINDS

PAGES_HELD = 20  # pages made at a time: the unit is the same for any number, memory isn't


def main() -> None:
    kind, traces, page_size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    spent, size, bodies = 0.0, 0, []
    page: list[bytes] = []
    for stored in KINDS[kind](traces):
        body = stored.whole() if callable(stored.whole) else stored.whole
        page.append(body)
        if len(page) == page_size:
            bodies.append(b'{"traces":[' + b",".join(page) + b"]}")
            page = []
        if len(bodies) * page_size * len(body) > 100_000_000 or len(bodies) == PAGES_HELD:
            spent += loads(bodies)
            size += sum(map(len, bodies))
            bodies = []
    if page:
        bodies.append(b'{"traces":[' + b",".join(page) + b"]}")
    spent += loads(bodies)
    size += sum(map(len, bodies))
    print(json.dumps({"cpu_s": spent, "bytes": size}))


def loads(bodies: list[bytes]) -> float:
    begin = time.process_time()
    for body in bodies:
        json.loads(body)
    return time.process_time() - begin


if __name__ == "__main__":
    main()
