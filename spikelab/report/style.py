"""What all figures have in common: size, colours, axes, and how one becomes inline SVG."""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import count
from typing import Any
from xml.sax.saxutils import escape

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from spikelab.signals import Colour
from spikelab.units import show_seconds

# Inches. Small enough that the words can be read where a phone shows it at its full width.
WIDTH, HEIGHT = 4.9, 3.1
INK, GRID = "#23272E", "#DDE1E6"
# Grafana's names as shades that are readable on white paper, and that the common kinds of colour
# blindness tell apart (Okabe and Ito's, where a colour tells curves apart).
_SHADES: dict[str, str] = {
    "green": "#2F7D32",
    "red": "#C4162A",
    "orange": "#D55E00",
    "blue": "#0072B2",
    "semi-dark-yellow": "#A87900",
    "#1FA8A0": "#00857D",
    "#8E8E8E": "#6B6F76",
    "#E54D9E": "#C2337F",
    "super-light-purple": "#B98BD9",
    "light-purple": "#A468CF",
    "purple": "#8A43BF",
    "semi-dark-purple": "#6A2A9C",
    "dark-purple": "#421266",
    "dark-orange": "#A63E00",
    "dark-red": "#7A0E1B",
    "super-light-red": "#E5737F",
}
# Curves of several variants: runs over each other, and more.
CURVES = [Colour.RUN_1, Colour.RUN_2, Colour.RUN_3, Colour.RUN_4, Colour.WAITING, Colour.P99]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "<", ">", "h"]
_SETTINGS: Any = {
    "svg.fonttype": "none",
    # Wider than the font of most pages: what fits with it fits there.
    "font.family": ["DejaVu Sans"],
    "font.size": 8.5,
    "axes.labelsize": 8.5,
    "axes.titlesize": 8.5,
    "axes.edgecolor": GRID,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "legend.fontsize": 8,
    # Names may hold a dollar sign.
    "text.parse_math": False,
}
# What is asked for, not measured.
LIMIT_LINE: dict[str, Any] = {
    "color": _SHADES[Colour.LIMIT.value],
    "linestyle": (0, (4, 3)),
    "linewidth": 1,
}
_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


@dataclass(frozen=True)
class Figure:
    """A drawn figure: its title, what it shows in a sentence, and its SVG."""

    title: str
    about: str
    svg: str
    wide: bool = False


def shade(colour: Colour) -> str:
    """A signal's colour for white paper."""
    return _SHADES[colour.value]


def curve(number: int) -> tuple[str, str]:
    """Colour and marker of the curve of that number, counted from 0."""
    return shade(CURVES[number % len(CURVES)]), MARKERS[number % len(MARKERS)]


def drawn(
    title: str,
    about: str,
    draw: Callable[[Axes], None],
    height: float = HEIGHT,
    wide: bool = False,
) -> Figure:
    """Makes a figure of one pair of axes, which `draw` fills in."""
    key = "f" + hashlib.sha256(title.encode()).hexdigest()[:8]
    with mpl.rc_context({**_SETTINGS, "svg.hashsalt": key}):
        canvas = Canvas(figsize=(WIDTH, height), layout="constrained")
        draw(canvas.subplots())
        file = StringIO()
        canvas.savefig(file, format="svg", transparent=True, metadata=_NO_METADATA)
    return Figure(title, about, _inline(file.getvalue(), key, title, about), wide)


def _inline(svg: str, key: str, title: str, about: str) -> str:
    """The SVG element alone, with ids of its own, its words for those who do not see it, and
    coordinates to a hundredth of a point."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r"<style[^>]*>.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r"<!--.*?-->\s*", "", body, flags=re.DOTALL)
    body = re.sub(r"<defs>\s*</defs>\s*", "", body)
    body = re.sub(r"\bid=\"([^\"]*)\"", rf'id="{key}-\1"', body)
    body = re.sub(r"url\(#([^)]*)\)", rf"url(#{key}-\1)", body)
    body = re.sub(r"href=\"#([^\"]*)\"", rf'href="#{key}-\1"', body)
    body = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0]), body)
    box = re.search(r'viewBox="([^"]*)"', body)
    head = (
        f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{box[1] if box else ""}"'
        f' role="img" aria-labelledby="{key}-title {key}-about">'
        f'<title id="{key}-title">{escape(title)}</title>'
        f'<desc id="{key}-about">{escape(about)}</desc>'
    )
    return re.sub(r"<svg[^>]*>", lambda _: head, body, count=1)


def log_seconds(axes: Axes, which: str = "y") -> None:
    """A logarithmic axis of durations, written with their units."""
    axis = axes.yaxis if which == "y" else axes.xaxis
    (axes.set_yscale if which == "y" else axes.set_xscale)("log")
    _log_ticks(axis)
    axis.set_major_formatter(FuncFormatter(lambda value, _: show_seconds(value)))


def _log_ticks(axis: Axis) -> None:
    """Enough ticks with a label in a short range; those between have none, which would be TeX."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 30 else (1,), numticks=12))
    axis.set_minor_formatter(NullFormatter())


def grouped(axes: Axes, which: str) -> None:
    """Numbers of an axis with their thousands apart."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    if axis.get_scale() == "log":
        _log_ticks(axis)
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axis.set_minor_formatter(NullFormatter())


def legend_above(axes: Axes, handles: Sequence[Artist] = (), columns: int = 4) -> None:
    """The legend over the axes, where it hides nothing: of these, else of all that has a label."""
    shown = handles or axes.get_legend_handles_labels()[0]
    if shown:
        axes.legend(
            handles=shown,
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=min(columns, len(shown)),
            borderaxespad=0.2,
            handletextpad=0.5,
            columnspacing=1.2,
        )


def limit_line(axes: Axes, value: float) -> None:
    """A dashed line across."""
    axes.axhline(value, zorder=1, **LIMIT_LINE)


def numbered(items: Iterable[str]) -> dict[str, int]:
    """Each different item's place, in the order in which they first come."""
    places = count()
    return {item: next(places) for item in dict.fromkeys(items)}
