"""Why a service has as many replicas as it has."""

from tenfold.report.reasons.template import Template

_BOUND = (
    "[; {needed_most:#replica} needed, but the maximum is {replicas_max:,}"
    "|; the minimum is {replicas_min:,}]"
)
SCALING = {
    code: Template(text + _BOUND)
    for code, text in (
        ("baseline-target", "{replicas:#replica}, as policy {policy} decides"),
        (
            "load-needs-replicas",
            "{replicas:#replica}: {slots:,.1f} slots busy, up to {peak:,.1f} expected "
            "within {within_ms:ms}",
        ),
        (
            "load-exceeds-capacity",
            "{replicas:#replica}: load exceeds capacity, {slots:,.1f} slots busy",
        ),
        (
            "backlog-needs-replicas",
            "{replicas:#replica} to drain the queue of {queued:#request}",
        ),
        (
            "scale-in-held",
            "{replicas:#replica}: {needed:,} needed now, scale-in waits until this has lasted "
            "{held_ms:ms}",
        ),
        (
            "floor-cheapest",
            "{replicas:#replica}: {needed:,} needed now, but a floor of {replicas} was cheapest "
            "on recent traffic",
        ),
        (
            "fixed-replicas-cheapest",
            "{replicas:#replica}: a fixed number was cheapest on recent traffic",
        ),
        (
            "history-too-short",
            "{replicas:#replica}: no scale-in with only {seen_ms:ms} of history",
        ),
        (
            "request-expected",
            "{replicas:#replica}: idle for {idle_ms:ms}, but a request is likely soon",
        ),
        ("service-idle", "{replicas:#replica}: no request for {idle_ms:ms}"),
        (
            "signal-above-target",
            "{replicas:#replica}: {signal:word} is {value:,.2f} per replica, target {target:,.2f}",
        ),
    )
}
