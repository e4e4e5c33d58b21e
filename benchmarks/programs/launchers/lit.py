"""Two ranks of Lightning's Trainer with the callback of the SDK, of which one fails."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import lightning
import torch
from failing import fail

from hyperjob.sdk.progress import ProgressCallback


class Model(lightning.LightningModule):
    """One layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def training_step(self, batch: list[torch.Tensor], number: int) -> torch.Tensor:
        """Return the loss."""
        fail(self.global_rank, number)
        return self.layer(batch[0]).mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimizer."""
        return torch.optim.SGD(self.parameters(), lr=0.1)


data = torch.utils.data.TensorDataset(torch.randn(400, 2))
lightning.Trainer(
    accelerator="cpu", devices=2, strategy="ddp", max_epochs=1, logger=False,
    enable_checkpointing=False, enable_progress_bar=False, callbacks=[ProgressCallback()],
).fit(Model(), torch.utils.data.DataLoader(data, batch_size=2))  # fmt: skip
