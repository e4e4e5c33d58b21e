"""Mutated reviews through the pure half: always an answer, never a 500, never a hang.

HYPERJOB_FUZZ_COUNT sets how many (`make fuzz` runs 100,000), HYPERJOB_FUZZ_SEED which ones.
"""

import base64
import gc
import os
import random
from pathlib import Path
from time import thread_time

import jsonpatch
import orjson
import pytest

from hyperjob_core.api.defaults import stored
from hyperjob_rules.configuration import (
    MUTATE_HYPERJOB,
    MUTATE_RESOURCEBINDING,
    PATHS,
    VALIDATE_HYPERJOB,
)
from hyperjob_webhook.admission import admit
from tests.support.reviewfuzz import mutated

COUNT = int(os.environ.get("HYPERJOB_FUZZ_COUNT", "5000"))
_SORTED = orjson.OPT_SORT_KEYS
SEED = int(os.environ.get("HYPERJOB_FUZZ_SEED", "20261121"))
CPU_LIMIT = 2.0  # seconds of one review: a hang, on any machine

BODIES = [
    line
    for line in (Path(__file__).parent / "data/admission-reviews.jsonl").read_bytes().splitlines()
    if b'"kind":"HyperJob"' in line[:300] or b'"kind":"ResourceBinding"' in line[:300]
]


def own_path(rng, body):
    if rng.random() < 0.05:
        return rng.choice(sorted(PATHS))
    if b"ResourceBinding" in body[:400]:
        return MUTATE_RESOURCEBINDING
    return rng.choice((MUTATE_HYPERJOB, VALIDATE_HYPERJOB, VALIDATE_HYPERJOB))


def gated(body):
    """Give a recorded binding our affinity name, so that stamping has work to do."""
    review = orjson.loads(body)
    placement = review["request"]["object"]["spec"]["placement"]
    placement["clusterAffinities"] = [{"affinityName": "hyperjob-gang", "clusterNames": ["m"]}]
    review["request"]["object"]["metadata"]["annotations"]["training.volcano.sh/gate"] = "held"
    return orjson.dumps(review)


BODIES += [
    gated(body)
    for body in BODIES
    if b'"kind":"ResourceBinding"' in body[:300] and b'"operation":"DELETE"' not in body
]
# HyperJobs have far more rules to reach.
BODIES += 6 * [body for body in BODIES if b'"kind":"HyperJob"' in body[:300]]


def memory_mb():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def check_answer(body, reply):
    answer = orjson.loads(reply.body)
    if reply.status != 200:
        assert reply.status in {400, 413}
        assert (answer["kind"], answer["code"]) == ("Status", reply.status)
        assert answer["message"]
        return
    response = answer["response"]
    assert response["uid"] == orjson.loads(body)["request"]["uid"]
    if response["allowed"]:
        assert "status" not in response
    else:
        assert response["status"]["code"] == 422
        assert response["status"]["details"]["causes"]
        assert "patch" not in response


def check_patch(path, body, reply):
    """Apply the patch as the API server would: the intended object, and nothing to add to it."""
    response = orjson.loads(reply.body)["response"]
    obj = orjson.loads(body)["request"]["object"]
    result = jsonpatch.apply_patch(obj, orjson.loads(base64.b64decode(response["patch"])))
    if path == MUTATE_HYPERJOB:
        wanted = stored(obj)
        assert orjson.dumps(result, option=_SORTED) == orjson.dumps(wanted, option=_SORTED)
        assert stored(result) is result


@pytest.mark.timeout(900)
def test_mutated_reviews():
    rng = random.Random(SEED)
    slowest = (0.0, b"")
    codes = dict.fromkeys((200, 400, 413), 0)
    denied = patched = 0
    early = None
    for number in range(COUNT):
        body = mutated(rng, BODIES)
        path = own_path(rng, body)
        started = thread_time()
        reply = admit(path, body)
        spent = thread_time() - started
        slowest = max(slowest, (spent, body))
        assert reply.bug is None, f"seed {SEED}, number {number}: {reply.bug!r} on {body!r}"
        check_answer(body, reply)
        codes[reply.status] += 1
        if reply.decision is not None:
            denied += not reply.decision.allowed
            patched += bool(reply.decision.patch)
            if reply.decision.patch and number % 10 == 0:
                check_patch(path, body, reply)
        if number == COUNT // 2:  # the memos are full
            early = memory_mb()
    assert slowest[0] < CPU_LIMIT, f"{slowest[0]:.1f} s on {slowest[1][:2000]!r}"
    assert early is not None
    assert memory_mb() - early < 40, "memory grows with the number of reviews"
    assert codes[200] > COUNT / 2
    assert codes[400] > COUNT / 50
    assert denied > COUNT / 20, "the rules are reached"
    assert patched > COUNT / 50, "the defaults and the gate are reached"
