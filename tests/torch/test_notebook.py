"""The example notebook runs: a bar that moves, curves of two runs, and the traceback of a third."""

import base64
import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "build" / "notebook"


def texts(cell, kind):
    return [
        str(each.get("data", {}).get(kind) or (each.get("text", "") if kind == "text" else ""))
        for each in cell.outputs
    ]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebook")
    document = nbformat.read(ROOT / "examples/notebook.ipynb", as_version=4)
    os.environ.setdefault("IPYTHONDIR", str(folder / "ipython"))
    updates: list[str] = []
    client = NotebookClient(
        document,
        timeout=400,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    before = client.process_message

    def process_message(msg, cell, cell_index):
        if msg["msg_type"] in ("display_data", "update_display_data"):
            updates.append(str(msg["content"]["data"].get("text/html", "")))
        return before(msg, cell, cell_index)

    client.process_message = process_message
    client.execute()
    cells = [cell for cell in document.cells if cell.cell_type == "code"]
    PICTURES.mkdir(parents=True, exist_ok=True)
    for number, cell in enumerate(cells):
        for each in cell.outputs:
            data = each.get("data", {}).get("image/png")
            if data:
                (PICTURES / f"{number}.png").write_bytes(base64.b64decode(data))
            table = each.get("data", {}).get("text/html")
            if table:
                (PICTURES / f"{number}.html").write_text(f"<meta charset=utf-8>{table}")
    return cells, updates


def test_the_bar_moves_while_the_training_runs(ran):
    _, updates = ran
    widths = {int(each) for page in updates for each in re.findall(r"width:(\d+)%", page)}
    assert len(widths) >= 2, updates[-3:]
    assert max(widths) == 100


def test_the_table_is_the_output_of_its_own_cell(ran):
    cells, _ = ran
    waits = next(cell for cell in cells if "show=True" in cell.source)
    assert any("slow: Completed" in each for each in texts(waits, "text/html"))


def test_the_loss_is_plotted_alone_and_over_another(ran):
    cells, _ = ran
    plots = [cell for cell in cells if any(texts(cell, "image/png"))]
    assert len(plots) == 2
    assert len(texts(plots[1], "image/png")[0]) > 10_000


def test_the_training_learns(ran):
    cells, _ = ran
    found = next(cell for cell in cells if "fast.metrics()" in cell.source)
    assert texts(found, "text/plain") == ["(120, True)"]


def test_a_failed_run_shows_its_traceback(ran):
    cells, _ = ran
    failed = next(cell for cell in cells if "def fails" in cell.source)
    text = "".join(each.get("text", "") for each in failed.outputs)
    assert "ValueError: the data has no labels" in text


def test_outputs_are_short(ran):
    cells, _ = ran
    shown = next(cell for cell in cells if cell.source == "slow")
    assert texts(shown, "text/plain") == ["<HyperJob default/slow Completed>"]
    assert cells[-1].outputs[0]["text"] == "default/slow\n"
