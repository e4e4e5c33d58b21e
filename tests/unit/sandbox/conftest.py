"""Hypothesis on machines that are shared and slow: counts decide, not the clock."""

from hypothesis import HealthCheck, settings

settings.register_profile("sandbox", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("sandbox")
