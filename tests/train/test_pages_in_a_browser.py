"""The pages of evaluations, training runs, traces and model calls, as a browser shows them: nothing is cut off."""

import asyncio

import pytest

import synmod as sm
from synmod.testing import FunctionLM
from tests.cli.test_clients import BROWSER
from tests.train.one_run import train
from tests.view.test_trace_page import HOSTILE

pytestmark = pytest.mark.slow

TEXTS = [HOSTILE, "a long sentence that goes on " * 99, "x" * 900, "two\nlines", "日本語 مرحبا \u202e", ""]

# What is wider than the window and does not scroll, and texts with too little contrast to what is behind them.
FAULTS = """() => {
  for (const entry of document.querySelectorAll('details')) entry.open = true;
  const bright = color => {
    const linear = x => x <= .04 ? x / 12.9 : ((x + .055) / 1.055) ** 2.4;
    const [r, g, b] = color.match(/[\\d.]+/g).map(x => linear(x / 255));
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = node => {
    for (; node; node = node.parentElement) {
      const color = getComputedStyle(node).backgroundColor;
      if (!/, 0\\)|transparent/.test(color)) return color;
    }
    return matchMedia('(prefers-color-scheme: dark)').matches ? 'rgb(18, 18, 18)' : 'rgb(255, 255, 255)';
  };
  const faults = [];
  if (document.documentElement.scrollWidth > document.documentElement.clientWidth) faults.push('wider than the window');
  for (const node of document.querySelectorAll('body *')) {
    if (![...node.childNodes].some(child => child.nodeType === 3 && child.data.trim())) continue;
    const style = getComputedStyle(node);
    const [a, b] = [bright(node.closest('svg') ? style.fill : style.color), bright(behind(node))].sort((a, b) => b - a);
    if ((a + .05) / (b + .05) < 4.5) faults.push(`${node.localName}: ${node.textContent.slice(0, 40)}`);
  }
  return [...new Set(faults), ...[...document.scripts].map(() => 'a script')];
}"""


class Text(sm.DataModel):
    """A ticket."""

    text: str


class Speaker(sm.Module):
    """Asks a model, and fails on one text."""

    def __init__(self):
        super().__init__()
        self.inner = sm.Generator(Text, language_model=FunctionLM(lambda request: {"text": HOSTILE + TEXTS[1]}))

    async def call(self, inputs: Text) -> Text:
        if not inputs.text:
            raise ValueError(HOSTILE + TEXTS[2])
        return await self.inner(inputs)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A page of each kind, by its name."""
    folder = tmp_path_factory.mktemp("pages")
    rows = [sm.Example(str(number), Text(text=text), number % 2) for number, text in enumerate(TEXTS)]

    def reward(y_pred, y_true):
        return sm.Feedback(float(y_true), critique=HOSTILE)

    with sm.trace() as trace:
        evaluation = sm.run(sm.evaluate(Speaker(), rows, reward=reward, metrics=[sm.metrics.Used("calls")]))
    with sm.trace() as empty:
        pass
    history = asyncio.run(train("Gepa"))[0]
    style = (
        "<!doctype html><meta name=viewport content='width=device-width'><style>:root{color-scheme:light dark}</style>"
    )
    (folder / "last.html").write_text(style + sm.last(9)._repr_html_())
    trace.to_html(folder / "trace.html")
    empty.to_html(folder / "empty.html")
    evaluation.to_html(folder / "evaluation.html", baseline=evaluation)
    history.to_html(folder / "history.html", others=[history])
    return folder


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
async def test_every_page_fits_its_window_and_can_be_read(pages, scheme, width):
    """Wide and narrow, by day and by night, with all entries open; nothing is loaded, nothing runs."""
    playwright = pytest.importorskip("playwright.async_api")
    async with playwright.async_playwright() as p:
        browser = await p.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = await browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        requests, faults = [], {}
        page.on("request", lambda request: requests.append(request.url))
        page.on("dialog", lambda dialog: requests.append(dialog.message))
        for path in sorted(pages.iterdir()):
            await page.goto(path.as_uri())
            faults[path.name] = await page.evaluate(FAULTS)
        await browser.close()
    assert len(requests) == len(faults) == 5
    assert faults == dict.fromkeys(faults, [])
