"""How judged figures become statements: docs/statistics.md says what is decided how, and why.

Pure functions: nothing here runs, reads or writes anything. Import it where a command needs it:
SciPy takes half a second to load.
"""

from typing import Literal

# Of every interval and bound.
CONFIDENCE = 0.95
# Of a comparison, about B. Here, so that it can be read without SciPy.
Answer = Literal["better", "worse", "equivalent", "inconclusive"]
