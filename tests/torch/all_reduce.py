"""What a training script does first: joins the world that torchrun made, and sums over it."""

import json
import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor([2 ** dist.get_rank()])
dist.all_reduce(total)
told = {
    "rank": dist.get_rank(),
    "world": dist.get_world_size(),
    "sum": int(total.item()),
    "job": os.environ["HYPERJOB_JOB_NAME"],
    "cluster": os.environ["HYPERJOB_CLUSTER"],
    "run": os.environ["TORCHELASTIC_RUN_ID"],
}
# One write, so that the lines of processes that share a pipe are never mixed.
os.write(1, f"{json.dumps(told)}\n".encode())
dist.destroy_process_group()
