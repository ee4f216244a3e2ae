"""Object stores and HDFS: opened by URL, listed, and read like files."""
