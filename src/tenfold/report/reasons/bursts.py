"""Why no node is rented for a job."""

from tenfold.report.reasons.template import Template

BURSTS = {
    "burst-not-needed": Template("your own nodes finish it in time"),
    "burst-no-zone": Template("no zone has its accelerator and tags"),
    "burst-no-capacity": Template("no capacity in {zones:#zone}", plain="no capacity in any zone"),
    "burst-staging-exceeds-benefit": Template(
        "staging and start-up take longer than waiting: it would finish {later_ms:ms} later",
        plain="staging and start-up take longer than waiting",
    ),
    "burst-too-late": Template(
        "it would finish {late_ms:ms} after its deadline even on rented nodes",
        plain="late even on rented nodes",
    ),
    "burst-too-many-nodes": Template(
        "it needs {needs:#node}; the limits allow {free} more", plain="too many nodes"
    ),
    "burst-over-budget": Template(
        "it would cost ${usd:.2f}, but only ${left:.2f} of the budget is left"
    ),
    "burst-changes-used-up": Template(
        "the limit on nodes rented within {window_ms:ms} is reached",
        plain="too many nodes rented recently",
    ),
}
