"""A training of Lightning, transformers or Accelerate, one of whose ranks hangs at a place."""

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from hyperjob.sdk import progress
from hyperjob.sdk.progress import ProgressCallback

GIVEN: dict[str, Any] = json.loads(sys.argv[1])
STEPS = 100_000
progress(phase="load")
torch.set_num_threads(1)


def meets(place: str, step: int) -> bool:
    """Return whether this rank hangs here and now; it writes down when."""
    found = (place, step, dist.get_rank()) == (GIVEN["fault"], GIVEN["at"], GIVEN["rank"])
    if found:
        names = os.environ["HYPERJOB_JOB_NAME"], os.environ["HYPERJOB_TASK_INDEX"]
        Path(f"{GIVEN['journal']}.pod").write_text("{}-worker-{}".format(*names))
        Path(f"{GIVEN['journal']}.fault").write_text(str(time.time()))
    return found


class Data(torch.utils.data.Dataset):
    """Rows, one of which never comes."""

    calls = 0

    def __len__(self) -> int:
        return 8 * STEPS

    def __getitem__(self, number: int) -> dict[str, torch.Tensor]:
        Data.calls += 1
        if meets("loader", Data.calls):
            time.sleep(100_000)  # the loader
        return {"x": torch.randn(8), "labels": torch.zeros(1)}


class Model(torch.nn.Module):
    """One layer, whose forward pass may never end."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
        self.calls = 0

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the loss."""
        self.calls += 1
        time.sleep(0.3)
        if meets("forward", self.calls):
            time.sleep(100_000)  # the forward pass
        return {"loss": (self.layer(x) - labels).square().mean()}


def after(step: int) -> None:
    """Wait in another collective than the others, or for a checkpoint that is never written."""
    if meets("collective", step):
        dist.recv(torch.zeros(1), src=(dist.get_rank() + 1) % dist.get_world_size())
    if meets("checkpoint", step):
        path = Path(f"{GIVEN['journal']}.pipe")
        os.mkfifo(path)
        with path.open("wb") as file:
            file.write(b"weights")


def lightning() -> None:
    """Train by Lightning."""
    import lightning as pl

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = Model()

        def training_step(self, batch: dict[str, torch.Tensor], _: int) -> torch.Tensor:
            return self.model(**batch)["loss"]

        def on_train_batch_end(self, *_: object) -> None:
            after(self.global_step)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    pl.Trainer(
        accelerator="cpu", devices=2, num_nodes=2, strategy="ddp", max_steps=STEPS, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        callbacks=[ProgressCallback()],
    ).fit(Module(), torch.utils.data.DataLoader(Data(), batch_size=1))  # fmt: skip


def transformers() -> None:
    """Train by the Trainer of transformers."""
    import transformers as hf

    class After(hf.TrainerCallback):
        def on_step_end(self, _: object, state: Any, *__: object, **___: object) -> None:  # noqa: ANN401
            after(state.global_step)

    arguments = hf.TrainingArguments(
        tempfile.mkdtemp(), use_cpu=True, max_steps=STEPS, save_strategy="no", report_to=[],
        disable_tqdm=True, per_device_train_batch_size=1, logging_steps=5,
    )  # fmt: skip
    callbacks = [ProgressCallback(), After()]
    hf.Trainer(Model(), arguments, train_dataset=Data(), callbacks=callbacks).train()


def accelerate() -> None:
    """Train by Accelerate."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(Data(), batch_size=1)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for step, batch in enumerate(loader, 1):
        loss = model(**batch)["loss"]
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        progress(step=step, steps=STEPS, loss=loss)
        after(step)


if __name__ == "__main__":
    {"lightning": lightning, "transformers": transformers, "accelerate": accelerate}[
        GIVEN["trainer"]
    ]()
