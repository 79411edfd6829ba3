"""What keeps a database in order: backups, health, retention, sessions that were ended."""
