"""`tenfold estimate federated`: what a round over several sites takes."""

from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from tenfold.cli.errors import Done
from tenfold.cli.estimate_federated_show import federated_json, show_federated
from tenfold.cli.output import print_json
from tenfold.cli.quantities import number, seconds
from tenfold.compose.federated import FederatedQuestion, estimate_federated
from tenfold.compose.fleet import open_fleet
from tenfold.model.errors import InputError
from tenfold.model.plan import Precision

ONE_OR_MORE = validators.Number(gte=1, lte=10**9)
COMPRESSION = validators.Number(gte=1, lte=10**6)
POSITIVE = validators.Number(gt=0, lte=100_000)
NOT_BELOW_0 = validators.Number(gte=0, lte=10**6)
SHARE = validators.Number(gt=0, lte=1)
Facts = Annotated[Path | None, Parameter(help="Folder of your own facts, over the shipped ones.")]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")]


@dataclass(frozen=True, kw_only=True)
class FederatedOptions:
    """What a federated job is, and what is known about its sites and links."""

    fleet: Annotated[Path, Parameter(help="A fleet file with sites and the links between them.")]
    local_steps: Annotated[
        int, Parameter(help="Steps a site takes in a round.", validator=ONE_OR_MORE)
    ]
    model: Annotated[str | None, Parameter(help="A model of the facts.")] = None
    params: Annotated[
        str | None, Parameter(help="Number of weights, as 11M; needs --step-s without a model.")
    ] = None
    site: Annotated[
        tuple[str, ...],
        Parameter(negative="", help="A site that takes part; all with accelerators unless given."),
    ] = ()
    coordinator: Annotated[str | None, Parameter(help="The site that averages.")] = None
    seq: Annotated[int | None, Parameter(help="Tokens a sequence.", validator=ONE_OR_MORE)] = None
    batch: Annotated[
        int | None, Parameter(help="Sequences of a local step of a site.", validator=ONE_OR_MORE)
    ] = None
    precision: Annotated[Precision | None, Parameter(help="Arithmetic of local steps.")] = None
    stack: Annotated[str | None, Parameter(help="Framework and version of local steps.")] = None
    step_s: Annotated[
        tuple[str, ...],
        Parameter(negative="", help="SITE=SECONDS of a local step, measured; not estimated then."),
    ] = ()
    samples: Annotated[
        tuple[str, ...], Parameter(negative="", help="SITE=NUMBER of samples: weights of the mean.")
    ] = ()
    slow: Annotated[
        tuple[str, ...], Parameter(negative="", help="SITE=FACTOR: a straggler, so much slower.")
    ] = ()
    compression: Annotated[
        float, Parameter(help="By how much uploads are smaller.", validator=COMPRESSION)
    ] = 1.0
    weight_bits: Annotated[
        int | None, Parameter(help="Bits of a weight on the way.", validator=ONE_OR_MORE)
    ] = None
    per_round: Annotated[
        int | None, Parameter(help="Sites drawn for a round.", validator=ONE_OR_MORE)
    ] = None
    quorum: Annotated[
        int | None, Parameter(help="Answers that close a round.", validator=ONE_OR_MORE)
    ] = None
    deadline: Annotated[
        str | None, Parameter(help="When a round without quorum is given up, as 30m.")
    ] = None
    average_s: Annotated[
        float | None,
        Parameter(help="Seconds in which models are averaged.", validator=NOT_BELOW_0),
    ] = None
    wan_gbps: Annotated[
        float | None,
        Parameter(help="Rate to suppose for sites without a link.", validator=POSITIVE),
    ] = None
    wan_latency_ms: Annotated[
        float | None, Parameter(help="Delay to suppose with it.", validator=NOT_BELOW_0)
    ] = None
    link_share: Annotated[
        float | None,
        Parameter(help="Part of each link that the job gets.", validator=SHARE),
    ] = None

    def question(self) -> FederatedQuestion:
        """Return the question, with durations and amounts read."""
        same = ("local_steps", "model", "coordinator", "seq", "batch", "precision", "stack")
        same += ("weight_bits", "compression", "per_round", "quorum", "average_s")
        same += ("wan_gbps", "wan_latency_ms", "link_share")
        return FederatedQuestion(
            **{field: getattr(self, field) for field in same},
            params=None if self.params is None else number(self.params, "--params"),
            sites=self.site,
            deadline_s=None if self.deadline is None else seconds(self.deadline, "--deadline"),
            step_s=_by_site(self.step_s, "--step-s"),
            samples=_by_site(self.samples, "--samples"),
            slowdown=_by_site(self.slow, "--slow"),
        )


def federated_command(
    options: Annotated[FederatedOptions, Parameter(name="*")],
    *,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Estimate a round of federated training: its time, its traffic, and what would shorten it.

    Rates between sites come from the links of the fleet file. Ends with status 1 where no
    round can succeed.
    """
    asked = options.question()
    answer = estimate_federated(open_fleet(options.fleet, facts), asked)
    if as_json:
        print_json(federated_json(answer))
    else:
        show_federated(answer)
    raise Done(0 if answer.round is not None else 1)


def _by_site(texts: tuple[str, ...], option: str) -> dict[str, float]:
    """Return values by site from words such as `north=0.5`."""
    found: dict[str, float] = {}
    for text in texts:
        name, mark, value = text.rpartition("=")
        try:
            figure = float(value)
        except ValueError:
            figure = 0.0
        if not mark or not name or not isfinite(figure) or figure <= 0:
            raise InputError(
                "bad-site-value",
                f"`{option}` is `{text}`, which is no site with a number above 0",
                f"write {option} SITE=NUMBER, once a site",
                field=option,
            )
        found[name] = figure
    return found
