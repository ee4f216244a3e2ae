"""Records of `__remote_log_metadata`: read, folded into the state of each remote segment, listed."""
