"""Samples of wrong answers, which k6's scripts print on its console (k6/lib/attempt.js)."""

import json
import re
from collections import defaultdict
from pathlib import Path

_MOST_A_PHASE = 5
_LONGEST = 200
_LINE = re.compile(r'msg="spikelab-body (?P<json>(?:[^"\\]|\\.)*)"')


def read_bodies(log: Path) -> dict[str, list[str]]:
    """Phase to `status: beginning of the body`, different ones, from a log of k6."""
    found: dict[str, list[str]] = defaultdict(list)
    with log.open(errors="replace") as lines:
        for line in lines:
            match = _LINE.search(line)
            if not match:
                continue
            try:
                sample = json.loads(json.loads(f'"{match["json"]}"'))
                text = f"{sample['status']}: {str(sample['body'])[:_LONGEST]}"
                samples = found[str(sample["phase"])]
            except (ValueError, KeyError, TypeError):
                continue  # cut off, or a line of the user's own that looks alike
            if text not in samples and len(samples) < _MOST_A_PHASE:
                samples.append(text)
    return found
