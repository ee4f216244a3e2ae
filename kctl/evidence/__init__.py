"""What lies in the folders given: log directories, broker logs, tiers, znode exports, of which broker and moment."""
