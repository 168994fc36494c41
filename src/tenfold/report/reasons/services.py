"""Why a replica is not ready or stops, why a rollout ended, and why a request was refused."""

from tenfold.report.reasons.template import Template

SERVICES = {
    "probe-failed": Template("the readiness probe failed: {detail:word}"),
    "replica-not-ready": Template("the replica is not ready"),
    "replica-not-ready-for": Template("not ready for {waited_ms:ms}: replaced"),
    "scaled-in": Template("{replicas:#replica} needed"),
    "revision-replaced": Template("revision {revision:name} was replaced"),
    "service-removed": Template("the service is being removed"),
    "canary-errors": Template(
        "{percent:.1f}% of {requests:#request} failed, {percent_others:.1f}% at other revisions"
    ),
    "canary-late": Template(
        "{percent:.1f}% of {requests:#request} missed the objective,"
        " {percent_others:.1f}% at other revisions"
    ),
    "canary-not-ready": Template(
        "no replica of the new revision is ready after {failures:#failure}"
    ),
    "rolled-back-by": Template("rolled back[ by {by:user}]", plain="rolled back"),
    "no-such-service": Template("no service {service:name}"),
    "service-changed": Template("service {service:name} was changed at the same time"),
    "service-of-other-team": Template("the name {service:name} is taken"),
    "no-rollout": Template("no revision of service {service:name} is being rolled out"),
    "no-earlier-revision": Template("service {service:name} has no earlier revision"),
}
