"""Dashboards as a person sees them: a headless Chromium that opens, reads and pictures them.

Needs a Chromium or Chrome on PATH (Debian: `apt-get install chromium`); Playwright, which drives
it, brings none here.
"""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from playwright import sync_api as playwright

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# No sandbox: it does not start as root, and the pages are the lab's own.
_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
WIDTH_PX, HEIGHT_PX = 1280, 800
# Grafana loads a panel when it comes into view.
_WHOLE_PAGE_PX = 4000
_LOAD_MS = 30_000
_SETTLE_MS = 1_500
_ERROR_MARKS = (
    # Grafana 9: the corner of a panel; 10 and later: its header; all: a message at the top.
    '[aria-label="Panel header error"]',
    ".panel-info-corner--error",
    '[data-testid*="Panel status error"]',
    '[data-testid*="Alert error"]',
)
_ERROR_WORDS = (
    "An unexpected error happened",
    "Panel plugin not found",
    "Angular plugin",
    "Datasource named",
    "Dashboard not found",
    "Failed to upgrade legacy queries",
)
_LOADING = '[aria-label="Panel loading bar"], .panel-loading'


def find_chromium() -> str | None:
    """The program, or None where there is none."""
    return next(filter(None, map(shutil.which, _PROGRAMS)), None)


class Browser:
    """One page of a headless Chromium on the lab's Grafana."""

    def __init__(self, program: playwright.Browser, grafana: str) -> None:
        self._program = program
        self._grafana = grafana
        self._page = program.new_page()

    def open(
        self, uid: str, parameters: Mapping[str, str | Sequence[str]], titles: list[str]
    ) -> None:
        """Opens a dashboard and waits until the panels with these titles are there and loaded."""
        # A new page: Grafana shows messages of one on the next, such as a fetch that was left.
        self._page.close()
        self._page = self._program.new_page()
        self._page.set_viewport_size({"width": WIDTH_PX, "height": _WHOLE_PAGE_PX})
        self._page.goto(f"{self._grafana}/d/{uid}?{urlencode(parameters, doseq=True)}")
        for title in titles:
            self._page.get_by_text(title, exact=True).first.wait_for(timeout=_LOAD_MS)
        self._settle()

    def errors(self) -> list[str]:
        """What the page says of panels that failed; empty when all is well."""
        found = [mark for mark in _ERROR_MARKS for _ in range(self._page.locator(mark).count())]
        text = self._page.inner_text("body")
        return [*found, *(words for words in _ERROR_WORDS if words in text)]

    def without_choice(self) -> bool:
        """Whether a variable has found nothing to choose from, so that it selects nothing."""
        menu = self._page.locator('section[aria-label="Dashboard submenu"]')
        shown = menu.first.inner_text() if menu.count() else self._page.inner_text("body")
        return "None" in shown.splitlines()

    def says(self, words: str) -> bool:
        """Whether these words are anywhere on the page."""
        return words in self._page.inner_text("body")

    def number(self, title: str) -> float:
        """What a figure's panel shows; 0 where it shows no number."""
        panel = self._page.locator(
            f'section[aria-label="{title} panel"], '
            f'section[data-testid="data-testid Panel header {title}"]'
        )
        shown = panel.first.inner_text().removeprefix(title)
        found = re.search(r"\d[\d,]*", shown)
        return float(found[0].replace(",", "")) if found else 0.0

    def picture(self, file: Path, height_px: int = HEIGHT_PX) -> None:
        """What a screen of this height shows of it."""
        self._page.set_viewport_size({"width": WIDTH_PX, "height": height_px})
        self._settle()
        self._page.screenshot(path=file)

    def _settle(self) -> None:
        """Waits for the queries under way, and for the drawing after them."""
        self._page.wait_for_timeout(_SETTLE_MS)
        self._page.wait_for_function(
            "marks => !document.querySelector(marks)", arg=_LOADING, timeout=_LOAD_MS
        )
        self._page.wait_for_timeout(_SETTLE_MS)


@contextmanager
def chromium(grafana: str) -> Iterator[Browser]:
    """A browser on a Grafana by its URL. Raises RuntimeError where there is no Chromium."""
    program = find_chromium()
    if program is None:
        raise RuntimeError("no Chromium on PATH: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=list(_FLAGS))
        try:
            yield Browser(started, grafana)
        finally:
            started.close()
