"""Mistakes that only a plan as a whole shows, with the place of the key that makes them."""

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError


def mistake(message: str, *location: int | str) -> ValidationError:
    """An error for a validator to raise: it is reported at `location` below the validated model."""
    # Not as the template itself, in which braces would mean something.
    error = PydanticCustomError("plan", "{message}", {"message": message})
    details = InitErrorDetails(type=error, loc=location, input=None)
    return ValidationError.from_exception_data("Plan", [details])
