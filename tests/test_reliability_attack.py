"""The program under attack: the command-line battery."""

import pytest
from reliability.battery import battery


def held(count):
    """Print what a check tried, and fail with all it found."""
    print(f"{count.name}: {count.tried} tried, {count.fine} fine, {len(count.failures)} failed")
    for note in count.notes:
        print(f"  {note}")
    assert count.tried > 0
    assert not count.failures, "\n" + "\n".join(count.failures)


def test_a_sample_of_the_battery():
    held(battery(every=7))


@pytest.mark.slow
def test_the_whole_battery():
    count = battery()
    assert count.tried >= 450
    held(count)
