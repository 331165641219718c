"""Files that are written whole or not at all."""

import os
from pathlib import Path


def write_whole(path: Path, text: str, mode: int = 0o644) -> None:
    """Writes a file by way of a temporary one, so that no reader sees half of it.

    A symlink stays one: what it points to is written. What is no regular file (a device, a pipe)
    is written to as it is. Raises OSError.
    """
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    real = path.resolve()
    temporary = real.with_name(f".{real.name}.{os.getpid()}")
    try:
        temporary.touch(mode)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(real)
    finally:
        temporary.unlink(missing_ok=True)
