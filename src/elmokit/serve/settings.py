"""What can be set of a server; nothing heavy is imported here, so that the command line can show it at once."""

from dataclasses import dataclass

from elmokit.config import check_above_zero, check_at_least


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one request, and all of them together, may ask for."""

    body_kb: int = 256
    """The largest request, in kilobytes."""
    texts: int = 256
    """The most texts of a request."""
    tokens: int = 8192
    """The most tokens of a request."""
    requests: int = 2048
    """The most requests under way; another is refused."""
    queue_tokens: int = 65_536
    """The most tokens that wait to be embedded; more are refused."""
    studies: int = 16
    """The most questions about words and tasks that are answered or wait; another is refused."""
    memory_mb: int = 256
    """The most memory that requests under way and their answers may take."""
    lines: int = 10_000
    """The most occurrences of a word that are looked at."""
    connections: int = 4096
    """The most open connections; another is closed."""
    timeout: float = 30.0
    """Seconds after which a request is given up."""
    slow_seconds: float = 10.0
    """Seconds in which a request's headers, and then its body, must have come."""

    def __post_init__(self) -> None:
        check_at_least(self, 1, "body_kb", "texts", "tokens", "requests", "queue_tokens", "studies", "memory_mb")
        check_at_least(self, 1, "lines", "connections")
        check_above_zero(self, "timeout", "slow_seconds")


@dataclass(frozen=True, kw_only=True)
class ServeSettings:
    """Who may ask, and what is written down of it."""

    host: str = "127.0.0.1"
    """The address to listen at: this machine alone unless given; 0.0.0.0 for all."""
    port: int = 8009
    """The port to listen at; 0 for any that is free."""
    key: str | None = None
    """Clients must send it: Authorization: Bearer KEY. From the variable ELMOKIT_KEY it is not seen among processes."""
    cors: tuple[str, ...] = ()
    """An origin whose pages may ask, such as https://example.org, or * for all. May be repeated."""
    allow_host: tuple[str, ...] = ()
    """A name by which the server is asked, beside localhost, its addresses and --host. May be repeated."""
    log_texts: bool = False
    """Write down what was asked, too."""
