"""The load drivers, one module each."""

from spikelab.drivers.base import Driver
from spikelab.drivers.k6 import K6
from spikelab.drivers.locust import Locust
from spikelab.plans.model import DriverName

DRIVERS: tuple[Driver, ...] = (K6(), Locust())


def driver_of(name: DriverName) -> Driver:
    """The driver that a plan names."""
    return next(driver for driver in DRIVERS if driver.name == name)
