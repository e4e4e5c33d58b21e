"""Two ranks under `accelerate launch`, of which one fails."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from accelerate import Accelerator
from failing import fail

accelerator = Accelerator(cpu=True)
for step in range(100):
    fail(accelerator.process_index, step)
    accelerator.wait_for_everyone()
