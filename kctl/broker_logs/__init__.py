"""The logs that brokers write: found, read, merged by time, and read as a history of who led when."""
