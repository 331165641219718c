"""HTML reports as a person sees them: a headless Chromium without a network."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright import sync_api as playwright

from bench.dashboard_browser import find_chromium
from spikelab.report.formats import write_report
from tests.support.report_results import ALL, SWEEP, fill

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")


WIDTHS_PX = (1280, 390)


@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium on PATH: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    with pytest.MonkeyPatch.context() as patch:
        fill(patch, tmp_path_factory.mktemp("report") / "results")
        yield {name: write_report(name) for name in ALL}


@pytest.mark.parametrize("name", ALL)
def test_a_report_opens_offline_and_every_figure_is_drawn(
    browser: playwright.Browser, pages: dict[str, Path], name: str
) -> None:
    context = browser.new_context(offline=True)
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(pages[name].as_uri())
    figures = page.locator("svg[role=img]")
    assert figures.count() >= 2
    for width in WIDTHS_PX:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for figure in figures.all():
            box = figure.bounding_box()
            assert box
            assert box["width"] > 250
            assert box["height"] > 60
            drawn = figure.locator("path[d]:not([d='']), use").all()
            assert sum((each.bounding_box() or {"width": 0})["width"] > 0 for each in drawn) >= 2
    assert said == []
    assert [url for url in asked if not url.startswith("data:")] == [pages[name].as_uri()]
    context.close()


def test_words_in_figures_can_be_read_on_a_phone(
    browser: playwright.Browser, pages: dict[str, Path]
) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.goto(pages[SWEEP].as_uri())
    heights = page.evaluate(
        "[...document.querySelectorAll('svg text')].map(t => t.getBoundingClientRect().height)"
    )
    assert min(heights) > 6.5
    page.close()


def test_a_report_prints(
    browser: playwright.Browser, pages: dict[str, Path], tmp_path: Path
) -> None:
    page = browser.new_page()
    page.goto(pages[SWEEP].as_uri())
    page.emulate_media(media="print")
    assert page.locator("figure.drawn").first.evaluate("e => getComputedStyle(e).breakInside") == (
        "avoid"
    )
    printed = page.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True)
    assert printed.startswith(b"%PDF")
    assert 2 <= printed.count(b"/Type /Page\n") <= 6
    # A table is as wide as the paper at most.
    page.set_viewport_size({"width": 700, "height": 1000})
    assert page.evaluate("document.documentElement.scrollWidth") <= 705
    page.close()
