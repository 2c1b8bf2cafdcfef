"""Prints the table of ratios."""

import sys

from tests.benchmarks import (
    blocks,
    caches,
    calls,
    data,
    durable,
    evaluations,
    files,
    fits,
    flax_graphs,
    generators,
    imports,
    overlays,
    requests,
    serving,
    skips,
    streams,
    traces,
    waits,
    walks,
)
from tests.benchmarks.measure import table

PARTS = {
    "calls": calls,
    "waits": waits,
    "walks": walks,
    "flax_graphs": flax_graphs,
    "overlays": overlays,
    "data": data,
    "files": files,
    "imports": imports,
    "skips": skips,
    "generators": generators,
    "requests": requests,
    "serving": serving,
    "streams": streams,
    "blocks": blocks,
    "traces": traces,
    "caches": caches,
    "durable": durable,
    "evaluations": evaluations,
    "fits": fits,
}


def main(names):
    """Measure the named parts, all without names."""
    if not set(names) <= set(PARTS):
        sys.exit(f"usage: python -m tests.benchmarks [part ...], where the parts are {', '.join(PARTS)}")
    chosen = [PARTS[name] for name in names] or list(PARTS.values())
    print(table([row for part in chosen for row in part.rows()]))


if __name__ == "__main__":
    main(sys.argv[1:])
