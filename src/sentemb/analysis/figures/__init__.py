"""Everything that draws with matplotlib."""
