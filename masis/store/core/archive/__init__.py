"""Everything a database holds, as records out (``export``) and in again (``restore``): what an archive is made of."""
