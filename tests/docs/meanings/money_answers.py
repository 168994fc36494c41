"""What each key of an answer about money is, and what it means."""

MONEY_ANSWER_KEYS = {
    "month": {
        "lines": ("list", "the bill, in order"),
        "total_usd": ("dollars", "its sum, added in whole millionths"),
        "gain": ("share, or null", "the better utilisation that is priced"),
        "same_work_saved_usd": ("dollars, or null", "less paid for the same work"),
        "extra_work_usd": ("dollars, or null", "worth of more work for the same bill"),
        "notes": ("list of texts", "what was supposed or left out"),
    },
    "own": {
        "accelerator": ("text", "which one"),
        "rent_usd_per_hour": ("dollars", "rent of an hour"),
        "always_usd_per_hour": ("dollars", "cost of owning that runs always"),
        "load_usd_per_hour": ("dollars", "what an hour of work adds"),
        "break_even": (
            "share, or null",
            "busy share above which owning is cheaper; above 1 it never is, and null where power "
            "alone costs more than rent",
        ),
        "busy": ("share", "of hours that it works, as asked"),
        "owned_usd_per_hour": ("dollars", "of a useful hour at that share"),
        "payback_months": ("months, or null", "to repay the price at that share"),
        "own": ("true or false", "whether owning is cheaper at that share"),
        "by_busy": ("list", "the same at other shares"),
        "notes": ("list of texts", "what was supposed"),
    },
    "busy": {
        "busy": ("share", "of hours that it works"),
        "owned_usd_per_hour": ("dollars", "of a useful hour"),
        "payback_months": ("months, or null", "to repay the price; null where not in its life"),
    },
}
