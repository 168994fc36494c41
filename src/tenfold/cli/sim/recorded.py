"""`tenfold sim run` with --bundle or --shadow."""

from pathlib import Path

from tenfold.cli.replay.render import shadow_json, show_shadow
from tenfold.cli.sim.present import present
from tenfold.compose.inputs import PreparedRun, policy_of
from tenfold.compose.policy_fleet import policy_for_fleet
from tenfold.study.replay.bundle import simulate_recorded


def run_recorded(
    prepared: PreparedRun,
    bundle: Path | None,
    shadow: str | None,
    *,
    facts: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Run a simulation with a bundle, a shadow policy, or both."""
    policy = None if shadow is None else policy_for_fleet(policy_of(shadow), prepared.spec, facts)
    result, shadowed = simulate_recorded(
        prepared.request, bundle=bundle, shadow=policy, force=force
    )
    extra = {} if shadowed is None else {"shadow": shadow_json(shadowed)}
    present(prepared, result, as_json=as_json, extra=extra)
    if shadowed is not None and not as_json:
        show_shadow(shadowed)
