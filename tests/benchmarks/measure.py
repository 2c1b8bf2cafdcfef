"""Timing in pairs: ours, floor, ours, floor, ...; the median of the ratios counts.

Work is timed by the CPU it takes, so that neighbours on the machine do not count; what waits is timed by the clock on
the wall; a child process by what the system says it took.
"""

import gc
import resource
import statistics
import tracemalloc
from dataclasses import dataclass
from time import perf_counter, process_time

wall = perf_counter
cpu = process_time


def children() -> float:
    """CPU seconds of the child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        what: What was measured.
        ours_us: Microseconds of synmod, the median round.
        floor_us: Microseconds of the floor, the median round; None where the budget is absolute.
        budget: The most that is good enough: a ratio, or microseconds.
        got: The ratio, or the microseconds.
        unit: Of both: times the floor, microseconds, or KiB, which `ours_us` then holds.
    """

    what: str
    ours_us: float
    floor_us: float | None
    budget: float
    got: float
    unit: str = "x"


def timed(fn, clock=cpu) -> float:
    """Seconds of one run."""
    start = clock()
    fn()
    return clock() - start


def paired(what, ours, floor, *, budget, unit="x", per=1, rounds=9, clock=cpu) -> Row:
    """Measure `ours` against `floor`, as a ratio or as the microseconds that are added to each of `per` units."""
    pairs = []
    if rounds > 1:  # the first run of all warms up
        ours(), floor()
    gc.disable()
    gc.freeze()  # what was there before is neither timed nor searched
    try:
        for _ in range(rounds):
            gc.collect()
            pairs.append((timed(ours, clock), timed(floor, clock)))
    finally:
        gc.enable()
    got = statistics.median(a / b if unit == "x" else (a - b) / per * 1e6 for a, b in pairs)
    medians = [statistics.median(column) / per * 1e6 for column in zip(*pairs, strict=True)]
    return Row(what, medians[0], medians[1], budget, got, unit)


def alone(what, ours, *, budget_us, per=1, rounds=9) -> Row:
    """Measure `ours` in microseconds of CPU a unit."""
    ours()
    gc.disable()
    try:
        each = statistics.median(timed(ours) for _ in range(rounds)) / per * 1e6
    finally:
        gc.enable()
    return Row(what, each, None, budget_us, each, "µs")


def memory(what, make, *, budget_kib, count=200) -> Row:
    """Measure the KiB that one of what `make(count)` returns takes."""
    make(count)  # what is made once for all
    gc.collect()
    tracemalloc.start()
    try:
        made = make(count)
        gc.collect()
        got = tracemalloc.get_traced_memory()[0] / len(made) / 1024
    finally:
        tracemalloc.stop()
    return Row(what, got, None, budget_kib, got, "KiB")


def table(rows) -> str:
    """The rows as text."""
    lines = [f"{'what':<56}{'ours':>15}{'floor':>15}{'got':>10}{'budget':>10}"]
    for row in rows:
        floor = "" if row.floor_us is None else f"{row.floor_us:,.2f} µs"
        over = "  over" if row.got > row.budget else ""
        got, budget = f"{row.got:.2f} {row.unit}", f"{round(row.budget, 3):g} {row.unit}"
        ours = f"{row.ours_us:,.2f} {'KiB' if row.unit == 'KiB' else 'µs'}"
        lines.append(f"{row.what:<56}{ours:>15}{floor:>15}{got:>10}{budget:>10}{over}")
    return "\n".join(lines)
