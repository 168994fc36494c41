"""What clients say when a wait runs out or a stream breaks off."""

from tenfold.model.errors import NoAnswer, Unreachable


def not_over(job_id: str, timeout_s: float | None) -> NoAnswer:
    """Return the error of a wait that was not long enough."""
    return NoAnswer(
        "not-over-yet",
        f"job `{job_id}` is not over after {timeout_s or 0:g} s",
        "it goes on; wait for it again, or look at it with `tenfold job show`",
    )


def log_broke_off(job_id: str, url: str) -> Unreachable:
    """Return the error of a log that ended before its attempt did."""
    return Unreachable(
        "log-broke-off",
        f"the control plane at `{url}` ended the log of job `{job_id}` before the job did",
        "the job goes on; follow it again once the control plane is back",
    )
