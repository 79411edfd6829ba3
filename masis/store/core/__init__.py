"""What every table stands on: connections, migrations, guards, the hash chain, backups, health."""
