"""Which registered model version a service serves, and what its replicas learn of it.

An alias is resolved when the service is deployed, and what replicas run has the location of that
version. So a revision serves the same files for as long as it exists, and a rollback brings back
those of the revision before.
"""

from msgspec import Struct
from msgspec.structs import replace

from tenfold.journal.models.rows import ModelVersionRow
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.reason import Reason
from tenfold.model.registry import Artefact, ModelReference
from tenfold.model.service.spec import MODEL, ServiceSpec
from tenfold.server.problems import Problem

MODEL_VARIABLE = "TENFOLD_MODEL"
PATH_VARIABLE = "TENFOLD_MODEL_PATH"
DIGEST_VARIABLE = "TENFOLD_MODEL_SHA256"


class ServedModel(Struct, frozen=True):
    """A version that replicas serve."""

    reference: ModelReference
    """With its number."""
    artefact: Artefact

    def recorded(self, spec: ServiceSpec) -> ServiceSpec:
        """Return a service with the number of the version in place of an alias."""
        return replace(spec, model=str(self.reference))

    def filled_in(self, spec: ServiceSpec) -> ServiceSpec:
        """Return a service with the location of the version in place of `{model}`."""
        location = self.artefact.location
        return replace(
            spec,
            command=tuple(one.replace(MODEL, location) for one in spec.command),
            env={name: value.replace(MODEL, location) for name, value in spec.env.items()},
        )

    def with_variables(self, run_spec: RunSpec) -> RunSpec:
        """Return what a replica runs, with the version in its environment."""
        variables = (
            (MODEL_VARIABLE, str(self.reference)),
            (PATH_VARIABLE, self.artefact.location),
            (DIGEST_VARIABLE, self.artefact.digest),
        )
        return replace(run_spec, env=(*run_spec.env, *variables))


def served_model(row: ModelVersionRow, reference: ModelReference) -> ServedModel:
    """Return the version of a reference; raise if it has no such variant."""
    numbered = replace(reference, version=str(row.number))
    if not reference.variant:
        return ServedModel(numbered, row.body.artefact)
    for one in row.body.variants:
        if one.name == reference.variant:
            return ServedModel(numbered, one.artefact)
    message = f"`{row.model}@{row.number}` has no variant `{reference.variant}`"
    known = ", ".join(f"`{one.name}`" for one in row.body.variants) or "none"
    raise Problem(404, Reason("no-such-version", sentence=message), f"it has {known}")
