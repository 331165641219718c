"""The driver that a plan names."""

from spikelab.drivers import Driver
from spikelab.drivers.k6 import K6
from spikelab.drivers.locust import Locust
from spikelab.plans.scripts import DriverName

_DRIVERS: dict[DriverName, Driver] = {"k6": K6(), "locust": Locust()}


def driver_of(name: DriverName) -> Driver:
    return _DRIVERS[name]
