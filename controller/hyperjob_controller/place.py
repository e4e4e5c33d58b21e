"""Where in the controller an unexpected exception was caught, or a turn took too long."""

from enum import StrEnum


class Place(StrEnum):
    """A part of the controller, as metrics and logs name it."""

    RECONCILE = "pass"
    ROUND = "round"
    EVENT = "event"
    FORECAST = "forecast"
    MESSAGES = "messages"
    PROGRESS = "progress"
    CAUSES = "causes"
    MEMBERS = "members"
    SPLITTER = "splitter"
    INFORMER = "informer"
    EVENTS = "events"
    TRAINJOBS = "trainjobs"
    RECORD = "record"
    LEASE = "lease"
    USAGE = "usage"
    LOOP = "loop"
