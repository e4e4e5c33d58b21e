"""Two ranks of torch, of which one fails."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import torch
import torch.distributed as dist
from failing import fail

for name, theirs in (("RANK", "OMPI_COMM_WORLD_RANK"), ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE")):
    if theirs in os.environ:
        os.environ[name] = os.environ[theirs]
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", os.environ["PORT"])
dist.init_process_group("gloo")
for step in range(100):
    fail(dist.get_rank(), step)
    dist.all_reduce(torch.zeros(1))
