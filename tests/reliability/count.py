"""What a reliability check tried and found."""

from dataclasses import dataclass, field


@dataclass
class Count:
    """What one reliability check tried and found."""

    name: str
    tried: int = 0
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def fine(self) -> int:
        return self.tried - len(self.failures)
