"""Citations by skip: offline, in a few seconds, and cheaper than passing the document along."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_document_goes_past_the_models(tmp_path):
    """Fewer prompt tokens for right citations; the saved program answers alike; leftovers are printed."""
    command = [sys.executable, ROOT / "examples" / "skip_citations.py"]
    run = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", cwd=tmp_path, timeout=120)
    assert run.returncode == 0, run.stderr
    threaded, skipping = (int(x.replace(",", "")) for x in re.findall(r"9 model calls, ([\d,]+) prompt", run.stdout))
    assert skipping < 0.8 * threaded
    assert "'doc' goes from '0' straight to '4'" in run.stdout
    for citation in ("Lighthouses: Fresnel lenses", "Honey bees: Foragers tell", "Sourdough: The bacteria make"):
        assert citation in run.stdout
    assert "equal answers" in run.stdout
    assert "dropped at the end: asked, doc, stashed by retrieve" in run.stdout
