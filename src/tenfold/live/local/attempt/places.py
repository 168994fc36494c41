"""The folders of a job: in its team's folder unless it names others."""

import os

from tenfold.live.local.attempt.folder import ExecutorDir, file_name, private_folder
from tenfold.live.local.member.user import acting_as
from tenfold.live.local.spawner.wire import LaunchLine


class JobFolders:
    """The folders of one attempt: team, working directory and checkpoints."""

    def __init__(self, home: ExecutorDir, launch: LaunchLine) -> None:
        self.team = home.team_folder(launch["team"])
        if launch["folder"]:
            self.workdir = os.path.normpath(os.path.join(self.team, launch["folder"]))
        else:
            # Shared by all attempts, so a later one finds earlier checkpoints.
            self.workdir = f"{self.team}/{file_name(launch['job'])}"
        saves = launch["saves_folder"]
        self.checkpoints = os.path.normpath(os.path.join(self.workdir, saves)) if saves else ""
        self.user = launch.get("user")

    def prepare(self) -> None:
        """Create folders in the team's folder. Other folders must exist.

        This runs with the team's rights, so a link planted by a job cannot reach further than the
        job.
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
        """Return the folders to mount in a container, none inside another."""
        kept: list[str] = [self.team]
        for folder in (self.workdir, self.checkpoints):
            if folder and not any(f"{folder}/".startswith(f"{outer}/") for outer in kept):
                kept.append(folder)
        return kept


def enter(folder: str) -> None:
    """Raise if this user cannot enter a folder."""
    os.stat(f"{folder}/.")


def escapes_team_folder(folder: str) -> bool:
    """Return whether a relative path leaves the folder it is relative to."""
    return not os.path.isabs(folder) and os.path.normpath(folder).split("/")[0] == ".."
