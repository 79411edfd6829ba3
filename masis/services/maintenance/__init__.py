"""Keep a database in order: backups, health checks, retention, ended sessions."""
