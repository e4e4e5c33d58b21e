"""Two ranks of the Trainer of transformers, of which one fails."""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import torch
import transformers
from failing import fail


class Model(torch.nn.Module):
    """One layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the loss."""
        return {"loss": (self.layer(x) - labels).square().mean()}


class Trainer(transformers.Trainer):
    """A Trainer whose loss fails."""

    def training_step(self, *args: object, **more: object) -> torch.Tensor:
        """Make a step."""
        fail(self.args.process_index, self.state.global_step)
        return super().training_step(*args, **more)


data = [{"x": torch.randn(2), "labels": torch.zeros(1)} for _ in range(400)]
arguments = transformers.TrainingArguments(
    tempfile.mkdtemp(), use_cpu=True, max_steps=50, save_strategy="no", report_to=[],
    disable_tqdm=True, per_device_train_batch_size=2,
)  # fmt: skip
Trainer(Model(), arguments, train_dataset=data).train()
