"""Several tests at once."""

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p values in the order given: at most 0.05 where Holm rejects at 5 %.

    The chance of any false rejection among them is then at most 5 %, however they depend on
    each other. Source: Holm, A simple sequentially rejective multiple test procedure, Scandinavian
    Journal of Statistics 6 (1979); adjusted values as in Wright, Biometrics 48 (1992).
    """
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    ascending = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, index in enumerate(ascending):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted
