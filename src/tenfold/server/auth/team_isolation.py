"""Keep teams apart on this machine, where the control plane is root and can.

Else their jobs run as whoever started it, and only the API stands between them: that is said at
the start, with the reason.
"""

import logging

from msgspec import Struct

from tenfold.live.acceptance import PREFIX
from tenfold.live.local.attempt.folder import ExecutorDir
from tenfold.live.local.attempt.own_folders import remove_other_access
from tenfold.live.local.member.team_users import (
    TeamUsers,
    UidsExhausted,
    reset_ownership_migration,
    why_no_team_users,
)
from tenfold.model.errors import InputError, Refused
from tenfold.server.runtime.settings import Settings
from tenfold.server.runtime.state_dir import StateDir

_LOG = logging.getLogger("tenfold.server")


class TeamIsolation(Struct, frozen=True):
    """The users of teams, if they have some, and how that is said."""

    users: TeamUsers | None
    description: str


def isolate_teams(settings: Settings, folder: StateDir) -> TeamIsolation:
    """Give teams users of their own where that can be done and was not declined."""
    executor_dir = ExecutorDir(str(folder.run))
    why = "--team-users off"
    if settings.team_users != "off":
        why = why_no_team_users(str(folder.path), settings.team_uids)
    if why and settings.team_users == "on":
        raise Refused(
            "teams-share-a-user",
            f"teams cannot have users of their own: {why}",
            "start it as root in a folder that others can come to, or leave out --team-users",
        )
    try:
        if why:
            reset_ownership_migration(executor_dir)
            description = (
                f"all run as one user, and are closed to each other in the API alone ({why})"
            )
            return TeamIsolation(None, description)
        return _with_users(settings, folder, executor_dir)
    except OSError as error:
        raise InputError(
            "home-unusable",
            f"the folders of teams cannot be given to their users: {error.strerror or error}",
            "look at the disk, or start with --team-users off",
            file=str(folder.path),
        ) from None
    except UidsExhausted:
        raise InputError(
            "no-team-user",
            "there are more teams than users for them",
            "name a longer range that no account uses",
            field="--team-uids",
        ) from None


def _with_users(settings: Settings, folder: StateDir, executor_dir: ExecutorDir) -> TeamIsolation:
    executor_dir.prepare()
    users = TeamUsers(executor_dir, settings.team_uids)
    # What lies beside the way is closed before the way is opened.
    remove_other_access(str(folder.path), ("run",))
    left = users.migrate_ownership((PREFIX,))
    folder.prepare()
    executor_dir.prepare()
    if left:
        _LOG.warning("%d files in folders of teams could not be given to their users", left)
    span = settings.team_uids
    return TeamIsolation(
        users, f"each runs as a user of its own, from uid {span.first} to {span.last}"
    )
