"""What keeps a job of Slurm out of its queue, computed without Slurm's own reason."""

from tenfold.report.reasons.template import Template

SLURM = {
    "held-in-slurm": Template("held in Slurm: `scontrol release` lets it start"),
    "not-eligible": Template(
        "not eligible yet: a dependency, begin time or hold (accounting does not distinguish them)"
    ),
    "dependency-open": Template("waits for {after:text}", plain="waits for other jobs"),
    "dependency-never-met": Template(
        "its dependency can no longer be met: {after:text}",
        plain="its dependency can no longer be met",
    ),
    "begin-time": Template("waits for its begin time, {at:word}"),
    "reservation-not-active": Template("its reservation {name:name} begins at {at:word}"),
    "partition-down": Template("partition {partition:name} is {state:word}"),
    "beyond-partition": Template(
        "requests more {what:word} than partition {partition:name} allows"
    ),
    "reserved-before-its-end": Template(
        "reservation {name:name} (from {at:word}) leaves too few nodes until its time limit"
    ),
    "required-node-unavailable": Template(
        "needs {node:node}, which is unavailable[: {why:text}]",
    ),
    "slurm-limit": Template(
        "limit of [{scope:word}|the {kind:word} {name:text}][ for {user:user}]: "
        "{used} of {most} {what:word}",
        scope={"job": "a single job"},
        plain="a limit of its account or QOS is reached",
    ),
    "order-not-carried-out": Template(
        "still held in Slurm, or no longer there: the request had no effect"
    ),
    "not-started-in-time": Template("Slurm did not start it on these nodes within {within_ms:ms}"),
    "slurm-refused": Template("Slurm rejected the request: {said:text}", plain="Slurm rejected it"),
    "started-otherwise": Template(
        "Slurm started it on other nodes or with other amounts than requested"
    ),
    "started-there": Template("Slurm started {job:job} on its nodes first"),
}
