"""Every trace of trace files as a valid ATIF trajectory, as the package harbor judges it.

usage: atif_check.py [FILE|FOLDER …]        without arguments: the recordings that lie beside this file

harbor needs Python 3.12 or newer, so this is no pytest test: it runs in an environment of its own that has harbor and
amp-evaluation. Exit 0: all valid; 1: some are not (each named); 2: nothing to check.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

from harbor.models.trajectories import Trajectory
from pydantic import ValidationError

from amp_evaluation.errors import TraceParseError
from amp_evaluation.trace import TraceLoader, parse_trace_for_evaluation

logging.disable(logging.CRITICAL)


def main(places: list[str]) -> int:
    valid, faults = 0, []
    for place in places or [str(Path(__file__).parent / "recordings" / "otlp")]:
        for otel in TraceLoader(place).iter_traces():
            try:
                trajectory = parse_trace_for_evaluation(otel).to_atif()
                Trajectory.model_validate(json.loads(json.dumps(trajectory, allow_nan=False)))
                valid += 1
            except (ValidationError, TraceParseError, ValueError) as error:
                faults.append(f"{place}, trace {otel.traceId}: {error}")
    for fault in faults:
        print(fault)
    newest = Trajectory.model_fields["schema_version"].default
    print(f"{valid} trajectories valid, {len(faults)} not; newest known schema {newest}")
    return 2 if not valid + len(faults) else 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
