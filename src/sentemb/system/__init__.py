"""What the operating system gives: files, locks, threads, processes."""
