"""Importing synmod, beside importing what it cannot do without; both from compiled files, as they are installed."""

import os
import subprocess
import sys
import tempfile

from tests.benchmarks.measure import children, paired


def _run(code, compiled):
    """Import in a new process; the first one fills the folder of compiled files."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = {**kept, "PYTHONPYCACHEPREFIX": compiled}
    return lambda: subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def rows(scale=1.0):
    """Measure."""
    with tempfile.TemporaryDirectory() as compiled:
        yield paired(
            "import synmod",
            _run("import synmod", compiled),
            _run("import asyncio, pydantic; pydantic.BaseModel", compiled),
            budget=2.5,
            rounds=15 if scale >= 1 else 1,
            clock=children,
        )
