"""Damage to an input that is valid, or was: to its bytes, to the words of its lines, to the tree
that it is as JSON. All of it follows from the `Random` that is given."""

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from random import Random
from typing import Any

_LONGEST = 20_000
# Where parsers go wrong: ends of ranges, no numbers, times at the end of the calendar, names of
# other files, markup of the console, what no text in UTF-8 is.
VALUES: Sequence[Any] = (
    *(None, True, False, 0, 1, -1, 7, 2**31, 2**53 + 1, 2**63, 10**15, 10**15 + 1, 10**400),
    *(0.0, -0.0, 0.5, 1e-9, 5e-324, 1e12, 1e300, 1.7e308, float("nan"), float("inf")),
    *(
        "",
        " ",
        "0",
        "-1",
        "NaN",
        "1e999",
        "x" * 300,
        "\0",
        "\x1b[31m",
        "a\nb",
        "\ud800",
        "\U0001f680",
    ),
    *("..", "../../x", "a/b", "[/x]", "[bold]", "<b>", "${rate}", "${", "%s", "{0}", "=1+1"),
    *("2026-11-21T09:38:02Z", "2026-11-21T09:38:02", "2026-11-21", "0001-01-01T00:00:00+23:59"),
    *("9999-12-31T23:59:59-23:59", "1s", "24h", "25h", "1ns", "99.9%", "200%", "p95 < 1s"),
    *([], {}, [[]], [None], [0], {"": None}, {"a": [1, {}]}, "rate", "users", "pass", "run"),
)
_WORDS = (
    *("0", "-1", "1e400", "nan", "inf", "9" * 400, "0x1f", "1_000", "\u0661", "1.5.5", "--", ""),
    *("\t", "\0", "\ufeff", "\u2028", "\x85", '"', "'", "[", "]", "{", "}", ",", ":", "%", "s"),
    *("&a", "*a", "<<: *a", "!!python/object:x", "!!float", "|", ">", "---", "? ", "- ", "# "),
    *("µs", "\u03bcs", "999999999h", "N/A", "Aggregated", "[/x]", "${rate}", "${}", "12:30:45"),
)
Mutation = Callable[[bytes, Sequence[bytes], Random], bytes]
Path = tuple[int | str, ...]


def mutate_bytes(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    """Some bytes changed, left out, doubled, or taken from another input."""
    at = random.randint(0, len(data))
    end = min(len(data), at + random.choice((1, 1, 2, 8, 64)))
    match random.randrange(6):
        case 0:
            return data[:at] + random.randbytes(end - at) + data[end:]
        case 1:
            return data[:at] + data[end:]
        case 2:
            return data[:end] + data[at:end] * random.choice((1, 2, 9)) + data[end:]
        case 3:
            return data[:at]
        case 4:
            other = random.choice(others)
            cut = random.randint(0, len(other))
            return data[:at] + other[cut : cut + random.choice((1, 4, 32, 400))] + data[at:]
        case _:
            flipped = bytes(byte ^ (1 << random.randrange(8)) for byte in data[at : at + 1])
            return data[:at] + flipped + data[at + 1 :]


def mutate_lines(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    """Lines left out, doubled, moved or indented, and words of one replaced."""
    lines = data.split(b"\n")
    at = random.randrange(len(lines))
    match random.randrange(7):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[at])
        case 2:
            other = random.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            lines[at] = random.choice((b" ", b"  ", b"\t", b"- ")) + lines[at]
        case 4:
            lines[at] = random.choice(random.choice(others).split(b"\n"))
        case _:
            lines[at] = _with_a_word(lines[at], random)
    return b"\n".join(lines)


def _with_a_word(line: bytes, random: Random) -> bytes:
    """One of its words or separators replaced by one that may mean something."""
    for sign in random.sample((b" ", b",", b":", b'"'), 4):
        words = line.split(sign)
        if len(words) > 1:
            words[random.randrange(len(words))] = random.choice(_WORDS).encode()
            return sign.join(words)
    return random.choice(_WORDS).encode()


def mutate_tree(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    """One to three changes of a JSON document; of what is none, changes of its lines."""
    try:
        tree, places = _parsed(data)
        for count in range(random.choice((1, 1, 2, 3))):
            if count:
                places = (_walk(tree, random),)
            tree = _changed(tree, places, others, random)
        # The lone halves of pairs too are written as they are: \ud800 is JSON, but no text.
        return json.dumps(tree, ensure_ascii=random.random() < 0.9).encode(errors="surrogatepass")
    except (ValueError, RecursionError):
        return mutate_lines(data, others, random)


@lru_cache(maxsize=64)
def _parsed(data: bytes) -> tuple[Any, tuple[Path, ...]]:
    tree = json.loads(data)
    places: list[Path] = []
    _add_places(tree, (), places)
    return tree, tuple(places)


def _add_places(tree: Any, here: Path, places: list[Path]) -> None:
    """Into a list: a generator in a generator for each level would take most of a case's time."""
    places.append(here)
    if isinstance(tree, dict):
        for key, value in tree.items():
            _add_places(value, (*here, key), places)
    elif isinstance(tree, list):
        for number, value in enumerate(tree):
            _add_places(value, (*here, number), places)


def _walk(tree: Any, random: Random) -> Path:
    """A way down, not always to the end."""
    path: Path = ()
    while isinstance(tree, dict | list) and tree and random.random() < 0.85:
        step = random.choice(list(tree)) if isinstance(tree, dict) else random.randrange(len(tree))
        path, tree = (*path, step), tree[step]
    return path


def _at(tree: Any, path: Path) -> Any:
    for step in path:
        tree = tree[step]
    return tree


def _put(tree: Any, path: Path, change: Callable[[Any], Any]) -> Any:
    """The tree with one part changed; the rest is shared with the old one."""
    if not path:
        return change(tree)
    copy = tree.copy()
    copy[path[0]] = _put(tree[path[0]], path[1:], change)
    return copy


def _changed(tree: Any, places: Sequence[Path], others: Sequence[bytes], random: Random) -> Any:
    path = random.choice(places)
    match random.randrange(8):
        case 0 | 1:
            return _put(tree, path, lambda _: random.choice(VALUES))
        case 2 | 3:
            return _put(tree, path, lambda value: _nudged(value, random))
        case 4 if path:
            return _put(tree, path[:-1], lambda parent: _without(parent, path[-1]))
        case 5:
            part = _at(tree, random.choice(places))
            return _put(tree, path, lambda _: part)
        case 6:
            other, from_there = _parsed(random.choice(others))
            part = _at(other, random.choice(from_there))
            return _put(tree, path, lambda _: part)
        case _:
            return _put(tree, path, lambda value: _grown(value, random))


def _nudged(value: Any, random: Random) -> Any:  # noqa: PLR0911
    """Still of its type, mostly."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return random.choice(
            (value + 1, value - 1, -value, value * 1000, value // 3, str(value)[:99])
        )
    if isinstance(value, float):
        return random.choice((-value, value * 1e6, value / 1e9, value // 1, value + 1e-9))
    if isinstance(value, str):
        at = random.randint(0, len(value))
        typed = random.choice((*_WORDS, random.choice("0a:-TZ[\n")))
        return value[:at] + typed + value[at + random.randint(0, 2) :]
    if isinstance(value, list):
        return random.sample(value, len(value)) if value else [None]
    if isinstance(value, dict) and value:
        old, new = random.choice(list(value)), random.choice((*value, *_WORDS))
        return {(new if key == old else key): each for key, each in value.items()}
    return [value]


def _without(parent: Any, key: int | str) -> Any:
    copy = parent.copy()
    del copy[key]
    return copy


def _grown(value: Any, random: Random) -> Any:
    if isinstance(value, list) and value:
        return (value + [random.choice(value)] * random.choice((1, 2, 50)))[:500]
    if isinstance(value, dict):
        return {**value, random.choice(_WORDS): random.choice(VALUES)}
    if isinstance(value, str):
        return (value * random.choice((2, 3, 100)))[:_LONGEST]
    return [value]
