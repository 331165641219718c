"""The lab's own HTTP: to its components on this machine, so never by way of a proxy."""

import httpx

client = httpx.Client(trust_env=False)
