"""What synmod costs, as ratios to floors written by hand: `python -m tests.benchmarks` prints the table.

Each file measures one thing beside its floor, in turns in one run, so that the ratio holds when the machine's speed
drifts. Nothing here is asserted against a time; the tests only see to it that every benchmark still runs.
"""
