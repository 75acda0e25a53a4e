"""Search pages and programs on the network: the server behind ``sentemb serve``."""
