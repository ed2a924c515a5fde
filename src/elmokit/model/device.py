"""Where to compute."""

import torch

from elmokit.errors import ConfigError


def usable_device(name: str | torch.device) -> torch.device:
    """The device of that name, which must be here."""
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"device {str(name)!r} cannot be used here: {reason}") from None
    return device
