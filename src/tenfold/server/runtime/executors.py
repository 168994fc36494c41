"""Which executor a control plane uses, and the users that its jobs run as there."""

import os
import pwd
from collections.abc import Callable, Mapping
from functools import partial

from msgspec import Struct

from tenfold.live.executor import Executor
from tenfold.live.external.executor import ExternalExecutor, ExternalOptions
from tenfold.live.local.attempt.folder import ExecutorDir
from tenfold.live.local.executor import LocalExecutor
from tenfold.live.local.member.team_users import TeamUsers
from tenfold.live.local.shells import open_shell
from tenfold.live.local.spawner.wire import UserLine
from tenfold.live.ray.engine import RayEngine
from tenfold.live.sites.executor import SitesExecutor
from tenfold.live.slurm.executor.engine import SlurmEngine
from tenfold.model.errors import InputError, Refused
from tenfold.server.auth.team_isolation import isolate_teams
from tenfold.server.runtime.settings import Settings
from tenfold.server.runtime.sites import check_users, hosts_of, shells_of, site_settings
from tenfold.server.runtime.state_dir import StateDir
from tenfold.server.shells import OpenShellCall, no_shells

EVERY_TEAM = "*"


def _here(node: str) -> str:
    """Return where replicas answer whose processes run on this machine, whatever their node."""
    del node
    return "127.0.0.1"


def _by_name(node: str) -> str:
    """Return where the replicas on a node answer: nodes of other systems are host names."""
    return node


class ChosenExecutor(Struct, frozen=True, kw_only=True):
    """The executor of a control plane, and what differs with it."""

    make: Callable[[], Executor]
    open_shell: OpenShellCall
    users: TeamUsers | None
    """The users that the local executor makes for teams."""
    teams: str
    """Which users the jobs of teams run as, for the start message."""
    memory_scope: Callable[[], str] = lambda: ""
    """Whether memory limits are those of a `job` or of each `process`; empty if unknown."""
    host_of: Callable[[str], str] = _by_name
    """Where the replicas on a node answer."""
    is_local: bool = False
    """Whether all jobs run on this machine, in one folder."""


def choose_executor(settings: Settings, folder: StateDir) -> ChosenExecutor:
    """Return the executor of the settings; raise if it would run jobs as the wrong user."""
    if settings.sites:
        return _sites(settings, folder)
    if settings.executor == "local":
        isolation = isolate_teams(settings, folder)
        users, made = isolation.users, list[LocalExecutor]()

        def make_local() -> Executor:
            made[:] = [LocalExecutor(str(folder.run), users=users, pids_most=settings.pids_most)]
            return made[0]

        return ChosenExecutor(
            make=make_local,
            open_shell=partial(open_shell, ExecutorDir(str(folder.run))),
            users=users,
            teams=isolation.description,
            memory_scope=lambda: made[0].memory_scope if made else "",
            host_of=_here,
            is_local=True,
        )
    home = str(folder.run)
    if settings.executor == "ray":
        return ChosenExecutor(
            make=lambda: ExternalExecutor(home, RayEngine(home, settings.ray_address)),
            open_shell=no_shells,
            users=None,
            teams="all jobs run as the user of the Ray cluster",
        )
    named, teams = _named_users(settings, folder)
    options = ExternalOptions(users=named)

    def make() -> Executor:
        return ExternalExecutor(home, SlurmEngine(home, options=settings.slurm), options)

    return ChosenExecutor(make=make, open_shell=no_shells, users=None, teams=teams)


def _named_users(settings: Settings, folder: StateDir) -> tuple[Mapping[str, UserLine] | None, str]:
    """Return the Unix user of each team, and let these users reach their attempts."""
    named, teams = unix_users(settings)
    if named is not None:
        for path in (folder.path, folder.run):
            # They reach their attempts through these folders, and cannot list them.
            os.chmod(path, 0o711)
    return named, teams


def _sites(settings: Settings, folder: StateDir) -> ChosenExecutor:
    """Return an executor over the engines of all sites."""
    kinds = dict.fromkeys(one.engine for one in settings.sites)
    users, named, teams = None, None, ""
    if "local" in kinds:
        isolation = isolate_teams(settings, folder)
        users, teams = isolation.users, isolation.description
        check_users(settings, users)
    elif "slurm" in kinds:
        named, teams = _named_users(settings, folder)
    else:
        teams = "all jobs run as the user of the Ray cluster of their site"
    run = folder.run
    sites = site_settings(settings, run, users, ExternalOptions(users=named))
    return ChosenExecutor(
        make=lambda: SitesExecutor(str(run), sites),
        open_shell=shells_of(settings.sites, run),
        users=users,
        teams=teams,
        host_of=hosts_of(settings),
    )


def unix_users(settings: Settings) -> tuple[Mapping[str, UserLine] | None, str]:
    """Return the Unix user of each team; None if all jobs run as the user of this process."""
    is_root = os.geteuid() == 0
    if settings.unix_users and not is_root:
        raise Refused(
            "not-root",
            "`--slurm-user` needs root: only root may submit for other users",
            "start as root, or leave it out to run all jobs as yourself",
        )
    if settings.unix_users:
        return _Named({team: _user(name) for team, name in settings.unix_users}), (
            "jobs run as the Unix user of their team: "
            + ", ".join(f"{team} as {name}" for team, name in settings.unix_users)
        )
    if is_root and settings.team_users != "off":
        raise Refused(
            "jobs-as-root",
            "this control plane runs as root, so its jobs would run as root on every node",
            "name a user for each team with --slurm-user TEAM=USER, start as another user, or "
            "allow it with --team-users off",
        )
    return None, f"all jobs run as {pwd.getpwuid(os.geteuid()).pw_name}"


class _Named(dict[str, UserLine]):
    """Users by team; `*` stands for every other team."""

    def __missing__(self, team: str) -> UserLine:
        return self[EVERY_TEAM]

    def __contains__(self, team: object) -> bool:
        return dict.__contains__(self, team) or dict.__contains__(self, EVERY_TEAM)


def _user(name: str) -> UserLine:
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise InputError(
            "no-such-user",
            f"`--slurm-user` names `{name}`, which has no account on this machine",
            "use the name of an account that the nodes know, too",
            field="--slurm-user",
        ) from None
    return {"uid": found.pw_uid, "gid": found.pw_gid, "groups": [], "name": name}
