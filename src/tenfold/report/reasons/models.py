"""Why a change of the model registry is rejected."""

from tenfold.report.reasons.template import Template

MODELS = {
    "no-such-model": Template("no model {name:name}"),
    "no-such-version": Template("model {name:name} has no version {number}"),
    "no-such-alias": Template("model {name:name} has no alias {alias:name}"),
    "no-such-parent": Template("parent {name:name}: the team has no such model version"),
    "version-has-alias": Template(
        "alias {alias:name} points to version {number} of model {name:name}"
    ),
    "too-many-models": Template("the team has {most:,} models, which is the limit"),
    "too-many-versions": Template("model {name:name} has {most:,} versions, which is the limit"),
    "too-many-aliases": Template("model {name:name} has {most} aliases, which is the limit"),
}
