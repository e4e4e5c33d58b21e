"""Numbers of the client that operators and other replicas count on: a change of one is meant."""

import pytest

from hyperjob.kube import (
    client,
    config,
    events,
    exchange,
    http,
    informer,
    leaderelection,
    oneshot,
    ratelimit,
    workqueue,
)

LIMITS = [
    # A call ends within 30 s; a watch is given up after 150 s without the bookmark of each minute.
    (client, {"TIME_LIMIT": 30.0, "IDLE_LIMIT": 150.0}),
    (config, {"REFRESH_SECONDS": 60.0, "_PLUGIN_SECONDS": 30.0}),
    # As client-go: three tries, and no wait beyond half a minute.
    (
        exchange,
        {
            "_TRIES": 3,
            "_LONGEST_WAIT": 30.0,
            "_RECONNECT_WAIT": 0.1,
            "_WARNINGS": 256,
            "_CREDENTIALS_SECONDS": 30.0,
        },
    ),
    (http, {"_CONNECTIONS": 256, "_LONGEST_LINE": 33554432, "_TURNS_TO_CLOSE": 100}),
    (oneshot, {"_CONNECTIONS": 8, "_CONNECT_SECONDS": 10.0}),
    # The reflector of client-go: watches of five to ten minutes.
    (informer, {"_HEALTHY_SECONDS": 10.0, "_RESUMES": 3, "_WATCH_SECONDS": (300, 600)}),
    # The defaults of client-go's leader election.
    (
        leaderelection,
        {
            "LEASE_SECONDS": 15,
            "RENEW_SECONDS": 10.0,
            "RETRY_SECONDS": 2.0,
            "_JITTER": 0.2,
            "_RELEASE_SECONDS": 5.0,
        },
    ),
    # The default rate limiter of client-go.
    (ratelimit, {"_BASE": 0.005, "_CAP": 1000.0, "_QPS": 10.0, "_BURST": 100}),
    (workqueue, {"PATIENCE": 10}),
    # The API server takes notes of 1 KiB; series and bursts are those of client-go's recorder.
    (
        events,
        {
            "_NOTE_BYTES": 1024,
            "_WAITING": 1000,
            "_REMEMBERED": 4096,
            "_SERIES_SECONDS": 360.0,
            "_BURST": 25,
            "_REFILL_PER_SECOND": 1 / 300,
            "_FLUSH_SECONDS": 2.0,
        },
    ),
]


@pytest.mark.parametrize(
    ("module", "numbers"), LIMITS, ids=[module.__name__ for module, _ in LIMITS]
)
def test_the_limits_are(module, numbers):
    assert {name: getattr(module, name) for name in numbers} == numbers
