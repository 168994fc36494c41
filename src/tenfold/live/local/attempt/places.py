"""Where a job runs and saves, under the folder of its team unless it names another."""

import os

from tenfold.live.local.attempt.folder import ExecutorDir, file_name, private_folder
from tenfold.live.local.member.user import acting_as
from tenfold.live.local.spawner.wire import LaunchLine


class JobFolders:
    """The folders of one attempt: its team's, the one it runs in, the one it saves to."""

    def __init__(self, home: ExecutorDir, launch: LaunchLine) -> None:
        self.team = home.team_folder(launch["team"])
        if launch["folder"]:
            self.workdir = os.path.normpath(os.path.join(self.team, launch["folder"]))
        else:
            # Shared by all attempts: a later one finds what an earlier one saved.
            self.workdir = f"{self.team}/{file_name(launch['job'])}"
        saves = launch["saves_folder"]
        self.checkpoints = os.path.normpath(os.path.join(self.workdir, saves)) if saves else ""
        self.user = launch.get("user")

    def prepare(self) -> None:
        """Make what lies under the team's folder. A folder elsewhere must be there.

        What a job could have put in the way, a link to elsewhere, is met with its own rights.
        """
        if not os.path.isdir(self.team):
            private_folder(self.team)
        if self.user is not None and os.lstat(self.team).st_uid != self.user["uid"]:
            os.chown(self.team, self.user["uid"], self.user["gid"], follow_symlinks=False)
        with acting_as(self.user):
            for folder in (self.workdir, self.checkpoints):
                if folder.startswith(f"{self.team}/"):
                    os.makedirs(folder, 0o700, exist_ok=True)
                if folder and self.user is not None:
                    enter(folder)

    def mounts(self) -> list[str]:
        """Return the folders that an image must see, none inside another."""
        kept: list[str] = [self.team]
        for folder in (self.workdir, self.checkpoints):
            if folder and not any(f"{folder}/".startswith(f"{outer}/") for outer in kept):
                kept.append(folder)
        return kept


def enter(folder: str) -> None:
    """Raise where this user cannot enter a folder."""
    os.stat(f"{folder}/.")


def escapes_team_folder(folder: str) -> bool:
    """Tell whether a relative folder climbs out of the one it is relative to."""
    return not os.path.isabs(folder) and os.path.normpath(folder).split("/")[0] == ".."
