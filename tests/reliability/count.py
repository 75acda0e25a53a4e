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


def held(count: Count) -> None:
    """Print what a check tried, and fail with all that it found."""
    print(f"{count.name}: {count.tried} tried, {count.fine} fine, {len(count.failures)} failed")
    for note in count.notes:
        print(f"  {note}")
    assert count.tried > 0
    assert not count.failures, "\n" + "\n".join(count.failures)
