"""The base of all tables: connections, migrations, triggers, hash chains, backups and health."""
