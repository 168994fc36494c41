"""The engines of a fleet with several sites, from a sites file to their executors."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tenfold.files.sites import SiteEngine
from tenfold.live.executor import Shell, ShellRequest
from tenfold.live.external.executor import ExternalExecutor, ExternalOptions
from tenfold.live.local.attempt.folder import ExecutorDir
from tenfold.live.local.executor import LocalExecutor
from tenfold.live.local.member.team_users import TeamUsers
from tenfold.live.local.shells import open_shell
from tenfold.live.ray.api import TOKEN
from tenfold.live.ray.engine import RayEngine
from tenfold.live.sites.folders import prepare_site_home, site_home
from tenfold.live.sites.site import AnsweringExecutor, SiteSettings
from tenfold.live.slurm.commands import own_environment
from tenfold.live.slurm.executor.engine import SlurmEngine, SlurmOptions
from tenfold.model.errors import InputError, Refused
from tenfold.model.ids import JobId, NodeId, SiteId
from tenfold.model.reason import Reason
from tenfold.server.runtime.settings import Settings
from tenfold.server.shells import OpenShellCall, no_shells


def site_settings(
    settings: Settings, run: Path, users: TeamUsers | None, options: ExternalOptions
) -> list[SiteSettings]:
    """Return the sites of a fleet with their engines; their folders are created."""
    nodes: dict[SiteId, list[NodeId]] = {}
    for node in settings.nodes:
        nodes.setdefault(node.site, []).append(node.id)
    found: list[SiteSettings] = []
    for one in settings.sites:
        home = prepare_site_home(str(run), one.name)
        found.append(
            SiteSettings(
                name=SiteId(one.name),
                nodes=tuple(nodes.get(SiteId(one.name), ())),
                home=home,
                make=_maker(one, home, settings, users, options),
                lost_after_s=one.lost_after_s,
                opens_shells=one.engine == "local",
            )
        )
    return found


def check_users(settings: Settings, users: TeamUsers | None) -> None:
    """Raise if engines would run the jobs of a team as different users."""
    kinds = dict.fromkeys(one.engine for one in settings.sites)
    if "local" in kinds and len(kinds) > 1 and (users is not None or settings.unix_users):
        raise Refused(
            "sites-mix-users",
            "local sites run jobs as the users of their teams, and other engines do not: jobs that "
            "move could not read what they saved",
            "start as an ordinary user, or with --team-users off and without --slurm-user",
        )


def shells_of(sites: Sequence[SiteEngine], run: Path) -> OpenShellCall:
    """Return what opens shells at local sites."""
    homes = [ExecutorDir(site_home(str(run), one.name)) for one in sites if one.engine == "local"]
    if not homes:
        return no_shells

    def call(job_id: JobId, attempt: int, request: ShellRequest) -> Shell | Reason:
        for home in homes:
            if os.path.isdir(home.attempt(job_id, attempt).path):
                return open_shell(home, job_id, attempt, request)
        return no_shells(job_id, attempt, request)

    return call


def hosts_of(settings: Settings) -> Callable[[str], str]:
    """Return what tells where the replicas on a node answer."""
    local = dict.fromkeys(SiteId(one.name) for one in settings.sites if one.engine == "local")
    here = {str(node.id): None for node in settings.nodes if node.site in local}
    return lambda node: "127.0.0.1" if node in here else node


def _maker(
    one: SiteEngine,
    home: str,
    settings: Settings,
    users: TeamUsers | None,
    options: ExternalOptions,
) -> Callable[[], AnsweringExecutor]:
    if one.engine == "local":
        return partial(LocalExecutor, home, users=users, pids_most=settings.pids_most)
    if one.engine == "ray":
        return partial(_ray, one, home, options)
    return partial(_slurm, one, home, options)


def _slurm(one: SiteEngine, home: str, options: ExternalOptions) -> ExternalExecutor:
    engine = SlurmEngine(
        home,
        environment=own_environment(one.conf),
        options=SlurmOptions(partition=one.partition, account=one.account, qos=one.qos),
    )
    return ExternalExecutor(home, engine, options)


def _ray(one: SiteEngine, home: str, options: ExternalOptions) -> ExternalExecutor:
    environment = dict(os.environ)
    if one.token_file:
        environment[TOKEN] = _token(one)
    assert one.address is not None, "the reader requires it"
    return ExternalExecutor(home, RayEngine(home, one.address, environment=environment), options)


def _token(one: SiteEngine) -> str:
    try:
        return Path(one.token_file).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            "no-token-file",
            f"cannot read the token of site `{one.name}`: {error}",
            "check `token_file` in the sites file",
            file=one.token_file,
        ) from None
