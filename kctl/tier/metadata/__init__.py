"""Records of `__remote_log_metadata`: read, applied to the state of each remote segment, printed."""
