"""Work that runs beside the pages: audits and screenings, in worker processes fed from one queue."""
