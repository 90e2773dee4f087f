"""Measure the whole job against a platform on loopback, and hold the figures against their bars.

    python libs/amp-evaluation/benchmarks/run.py [CASE …]

Each figure is the best of several runs of `python main.py` as a process of its own; CPU is told as a multiple of
`json.loads` over the same bytes, measured in turn with it on the same machine. Exits 1 when a bar is missed.
"""

import argparse
import sys
import time

from _cases import CASES, Row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all without any")
    wanted = parser.parse_args().cases or list(CASES)
    unknown = [name for name in wanted if name not in CASES]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}")
    rows: list[Row] = []
    for name in wanted:
        begin = time.monotonic()
        rows += CASES[name]()
        print(f"{name}: {time.monotonic() - begin:.0f} s", file=sys.stderr)
    show(rows)
    return 0 if all(row.passed for row in rows) else 1


def show(rows: list[Row]) -> None:
    """One table, in Markdown."""
    print("| figure | value | bar | aim | |")
    print("|---|---:|---:|---:|---|")
    for row in rows:
        bar = "" if row.bar is None else f"{row.bar:g}"
        aim = "" if row.aim is None else f"{row.aim:g}"
        verdict = "" if row.bar is None else "pass" if row.passed else "FAIL"
        print(f"| {row.name} | {row.value:.2f} {row.unit} | {bar} | {aim} | {verdict} |")


if __name__ == "__main__":
    sys.exit(main())
