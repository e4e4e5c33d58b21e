"""`hyperjob plan`: what it says of HyperJobs for idle clusters and queues."""

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.decisions.draw import Draw
from tests.decisions.hyperjobs import Object, hyperjob_of
from tests.decisions.rows import Row, changes
from tests.decisions.sites import Site, queues_of, sites_of, urgent


def cluster_of(site: Site) -> Object:
    """Return a cluster as the clusters file has it."""
    nodes = [
        {"name": f"n{index}", "count": 1, "allocatable": size}
        for index, size in enumerate(site.size)
    ]
    return {"name": site.name, "nodes": nodes, **site.spec}


def plan_cases(entry: Any, count: int) -> Iterator[tuple[str, list[Row]]]:
    for number in range(count):
        draw = Draw(f"plan {number}")
        jobs = [
            hyperjob_of(draw.at(index), f"j{index}") for index in range(draw.number("jobs", 1, 4))
        ]
        clusters = {"clusters": [cluster_of(each) for each in sites_of(draw)]}
        manifests = [*queues_of(draw), urgent(), *jobs]
        with tempfile.TemporaryDirectory() as folder:
            files = Path(folder) / "jobs.json", Path(folder) / "clusters.json"
            files[0].write_text(
                json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
            )
            files[1].write_text(json.dumps(clusters))
            code, text = entry.plan(*map(str, files))
        told = re.sub(r"T[0-9:]{8}Z", "", text.replace(folder, ""))  # of the machine's clock
        facts = changes({}, {"plan": json.loads(told)}) if told.startswith(("[", "{")) else [told]
        yield f"plan {number}", [(0.0, "plan", f"exits {code}"), *((0.0, "plan", f) for f in facts)]
