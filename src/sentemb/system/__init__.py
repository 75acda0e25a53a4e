"""The operating system: files, locks, threads, processes."""
