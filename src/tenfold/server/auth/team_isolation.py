"""Isolate teams on this machine with a user per team, if the control plane runs as root.

Otherwise all jobs run as the user who started it and can read each other's files; only requests to
the API are separated by team. The start message says so, with the reason.
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
    """The team users, if any, and a description for the start message."""

    users: TeamUsers | None
    description: str


def isolate_teams(settings: Settings, folder: StateDir) -> TeamIsolation:
    """Give each team its own user, if possible and not turned off."""
    executor_dir = ExecutorDir(str(folder.run))
    why = "--team-users off"
    if settings.team_users != "off":
        why = why_no_team_users(str(folder.path), settings.team_uids)
    if why and settings.team_users == "on":
        raise Refused(
            "teams-share-a-user",
            f"cannot run teams as separate users: {why}",
            "start as root in a directory that other users can enter, or leave out --team-users",
        )
    try:
        if why:
            reset_ownership_migration(executor_dir)
            description = (
                "all jobs run as one Unix user and can read each other's files;"
                f" only requests to the API are separated by team ({why})"
            )
            return TeamIsolation(None, description)
        return _with_users(settings, folder, executor_dir)
    except OSError as error:
        raise InputError(
            "home-unusable",
            f"cannot change the owner of team folders: {error.strerror or error}",
            "check the disk, or start with --team-users off",
            file=str(folder.path),
        ) from None
    except UidsExhausted:
        raise InputError(
            "no-team-user",
            "more teams than UIDs",
            "choose a larger range that no account uses",
            field="--team-uids",
        ) from None


def _with_users(settings: Settings, folder: StateDir, executor_dir: ExecutorDir) -> TeamIsolation:
    executor_dir.prepare()
    users = TeamUsers(executor_dir, settings.team_uids)
    # Everything next to the path is closed before the path is opened.
    remove_other_access(str(folder.path), ("run",))
    left = users.migrate_ownership((PREFIX,))
    folder.prepare()
    executor_dir.prepare()
    if left:
        _LOG.warning("the owner of %d files in team folders could not be changed", left)
    span = settings.team_uids
    return TeamIsolation(
        users, f"jobs of each team run as a separate user, UIDs {span.first} to {span.last}"
    )
