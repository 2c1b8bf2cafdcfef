"""A browser for pages that draw themselves: what they show once their scripts have run."""

import shutil
import subprocess

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--window-size=1400,900",
)  # fmt: skip


def shown(page, folder):
    """The elements of a page, as text, after its scripts; skips the test where no browser is installed."""
    browser = next(filter(None, map(shutil.which, _NAMES)), None)
    if browser is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    call = [browser, *_FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom", page]
    ended = subprocess.run(call, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    return ended.stdout
