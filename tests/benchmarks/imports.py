"""Importing synmod, beside importing what it cannot do without."""

import subprocess
import sys

from tests.benchmarks.measure import paired


def _run(code):
    return lambda: subprocess.run([sys.executable, "-c", code], check=True)


def rows(scale=1.0):
    """Measure."""
    yield paired(
        "import synmod",
        _run("import synmod"),
        _run("import asyncio, pydantic; pydantic.BaseModel"),
        budget=2,
        rounds=7 if scale >= 1 else 1,
    )
