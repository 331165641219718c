"""A driver's bearer token as a file: what a container has in its environment, whoever may speak to
the engine can read."""

import os
from pathlib import Path

from spikelab import paths

_FILE = paths.STATE / "token"


def token_file() -> dict[str, str]:
    """The variable that names the user's token, of TOKEN or TOKEN_FILE; none where there is none.
    The file is its owner's, who is the driver's user too."""
    _FILE.unlink(missing_ok=True)
    if token := os.environ.get("TOKEN"):
        _FILE.touch(mode=0o600)
        _FILE.write_text(token)
        return {"TOKEN_FILE": str(_FILE)}
    return named_token_file()


def named_token_file() -> dict[str, str]:
    """TOKEN_FILE against the working directory: Compose would look for it beside its own file, k6
    beside its script."""
    named = os.environ.get("TOKEN_FILE")
    return {"TOKEN_FILE": str(Path(named).resolve())} if named else {}
