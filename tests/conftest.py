"""How properties are drawn: freely at the desk, the same way each time where a change must land."""

import os

from hypothesis import settings

# A failure prints the line that draws the same example again.
settings.register_profile("desk", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")
