"""What one check brought: measurements, and what this node's own settings demand of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from nodectl.verify.judge import Expectation
from nodectl.verify.measurement import Measurement


@dataclass
class Reading:
    """Grows while a check runs; the judge reads it afterwards."""

    measurements: list[Measurement] = field(default_factory=list)
    expectations: list[Expectation] = field(default_factory=list)

    def add(self, measurement: Measurement, *expectations: Expectation) -> None:
        self.measurements.append(measurement)
        self.expectations.extend(expectations)

    def must_be_true(self, measurement: Measurement, why: str) -> None:
        """A measurement of unit bool that has to be true; its ``raw`` says what was found instead."""
        self.add(measurement, *(Expectation(measurement.name, "equals", True, "bool", why, host) for host in measurement.hosts))

    def join(self, others: Iterable[Reading]) -> Reading:
        for other in others:
            self.measurements += other.measurements
            self.expectations += other.expectations
        return self


def unknown(name: str, hosts: tuple[str, ...], method: str, error: str) -> Reading:
    """A check that could not be made."""
    return Reading([Measurement(name, None, "text", hosts, method, error=error)])
