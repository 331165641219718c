"""The lab's own noise on this machine, from a comparison of identical arms (A/A)."""

from spikelab.comparison import sentences
from spikelab.comparison.model import ComparisonRecord, Noise, Result
from spikelab.statistics import power


def with_noise(record: ComparisonRecord) -> ComparisonRecord:
    """Of identical arms: what the deviation of their log-ratios allows, by metric."""
    deciding = [result for result in record.results if result.place == record.at]
    noise = [_noise(result, record.margin) for result in deciding]
    return record.model_copy(update={"noise": noise, "summary": sentences.noise(record, noise)})


def _noise(result: Result, margin: float) -> Noise:
    pairs, deviation = len(result.pairs), result.log_deviation
    if deviation is None:
        return Noise(
            metric=result.metric,
            pairs=pairs,
            log_deviation=None,
            smallest_difference=None,
            pairs_needed=None,
            reason=result.reason or "a figure is zero or infinite",
        )
    return Noise(
        metric=result.metric,
        pairs=pairs,
        log_deviation=deviation,
        smallest_difference=power.smallest_difference(deviation, pairs),
        pairs_needed=power.pairs_needed(deviation, margin),
    )
