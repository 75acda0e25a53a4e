"""A shop's month: records and a catalogue to the next index, and what a person pins."""
