"""What every command shares: frame, options, connection, confirmation, rendering."""
