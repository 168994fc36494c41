"""The type and meaning of each key of a cost estimate."""

MONEY_ANSWER_KEYS = {
    "month": {
        "lines": ("list", "items of the bill, in order"),
        "total_usd": ("dollars", "sum of the items, computed in integer micro-dollars"),
        "gain": ("share, or null", "gain in utilisation"),
        "same_work_saved_usd": (
            "dollars, or null",
            "savings if the same work runs on less capacity",
        ),
        "extra_work_usd": ("dollars, or null", "value of the extra work for the same bill"),
        "notes": ("list of texts", "assumptions and omissions"),
    },
    "own": {
        "accelerator": ("text", "the accelerator"),
        "rent_usd_per_hour": ("dollars", "rental price per hour"),
        "always_usd_per_hour": ("dollars", "fixed cost of owning, per hour"),
        "load_usd_per_hour": ("dollars", "additional cost of an hour under load"),
        "break_even": (
            "share, or null",
            "utilisation above which owning is cheaper; above 1 if owning is never cheaper, null "
            "if power alone costs more than renting",
        ),
        "busy": ("share", "utilisation given with `--busy-percent`"),
        "owned_usd_per_hour": ("dollars", "cost of a useful hour at that utilisation"),
        "payback_months": ("months, or null", "payback time at that utilisation"),
        "own": ("true or false", "whether owning is cheaper at that utilisation"),
        "by_busy": ("list", "results at other utilisations"),
        "notes": ("list of texts", "assumptions"),
    },
    "busy": {
        "busy": ("share", "utilisation"),
        "owned_usd_per_hour": ("dollars", "cost of a useful hour"),
        "payback_months": ("months, or null", "payback time; null if longer than the lifetime"),
    },
}
