"""The judge: versions of what it is told, and how far it decides as people do."""
