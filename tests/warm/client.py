"""Ask the warm process beside this file to run one command on our standard streams."""

import json
import os
import socket
import sys
from pathlib import Path

with socket.socket(socket.AF_UNIX) as link:
    link.connect(str(Path(sys.argv[0]).resolve().with_name("socket")))
    asked = {"words": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}
    body = json.dumps(asked).encode()
    socket.send_fds(link, [len(body).to_bytes(8, "big")], [0, 1, 2])
    link.sendall(body)
    status = link.recv(1)
sys.exit(status[0] if status else 70)
