"""How things look: one table of colours for all dashboards, and the words of
closed lists as value mappings. Severities have the same colour wherever they
stand, and so have states and the parts of the time."""

from grafana_foundation_sdk.models import dashboard as model

OK, INFO, WARNING, CRITICAL, QUIET = "green", "blue", "orange", "red", "#8e8e8e"

SEVERITIES = {"critical": CRITICAL, "warning": WARNING, "info": INFO}

# As a number, so that a table can be sorted by it: the label would sort as a word.
RANKS = {"critical": 3, "warning": 2, "info": 1}

# As on the exporter's own page.
STATES = {
    "running": INFO,
    "succeeded": OK,
    "failed": CRITICAL,
    "lost": CRITICAL,
    "killed": WARNING,
    "cancelled": QUIET,
    "unknown": QUIET,
}

STATUSES = {
    "pending": QUIET,
    "active": INFO,
    "running": INFO,
    "complete": OK,
    "completed": OK,
    "succeeded": OK,
    "failed": CRITICAL,
    "killed": WARNING,
    "cancelled": QUIET,
    "skipped": QUIET,
    "unknown": QUIET,
}

# Where the time went: what computes is green, what waits is warm.
PARTS = {
    "resources": "dark-red",
    "driver": "purple",
    "scheduling": "yellow",
    "deserialize": "light-blue",
    "cpu": "green",
    "gc": "orange",
    "fetch_wait": "dark-orange",
    "shuffle_write": "blue",
    "result": "light-green",
    "blocked": "red",
}


def value_map(results: dict[str, tuple[str, str | None]]) -> model.ValueMap:
    """Text and colour of each value."""
    return model.ValueMap(
        {
            value: model.ValueMappingResult(text=text, color=color, index=index)
            for index, (value, (text, color)) in enumerate(results.items())
        }
    )


def colored(colors: dict[str, str]) -> list:
    """Words that stay as they are and take their colour."""
    return [value_map({word: (word, color) for word, color in colors.items()})]


def ranked() -> list:
    """Ranks of severities as their words, with their colours."""
    return [value_map({str(RANKS[word]): (word, color) for word, color in SEVERITIES.items()})]


def yes_no(yes: str, no: str, yes_color: str = OK, no_color: str = CRITICAL) -> list:
    """1 and 0 as words."""
    return [value_map({"1": (yes, yes_color), "0": (no, no_color)})]


def steps(*limits: tuple[float | None, str]) -> model.ThresholdsConfig:
    """Thresholds: the colour from each limit on; the first limit is None."""
    return model.ThresholdsConfig(
        mode=model.ThresholdsMode.ABSOLUTE,
        steps=[model.Threshold(value=limit, color=color) for limit, color in limits],
    )
