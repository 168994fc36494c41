"""The gateway of a control plane, as a child process."""

from collections.abc import Callable, Sequence
from pathlib import Path

from tenfold.server.background.child_process import ChildProcess

END_S = 5.0


class GatewayProcess(ChildProcess):
    """Runs a gateway while it runs."""

    def __init__(
        self, listen: str, control_plane: Callable[[], str], state_dir: Path, log: Path
    ) -> None:
        super().__init__("gateway", ("gateway: ", "admin: "), END_S, state_dir, log)
        self._listen, self._control_plane = listen, control_plane

    def words(self) -> Sequence[str]:
        """Return the command, once the control plane has an address."""
        url = self._control_plane()
        if not url:
            return ()
        addresses = ("--listen", self._listen, "--admin", "127.0.0.1:0", "--json-log")
        return ("gateway", "run", "--control-plane", url, *addresses)
