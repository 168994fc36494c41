"""What the planner predicts against what was published and measured."""

import os

# The fits solve small systems by the thousand: on a busy machine the threads of the linear
# algebra library wait for each other ten times longer than one of them works. Set before numpy
# is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
