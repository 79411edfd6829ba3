"""Work that runs beside the pages: audits and screenings in processes of their own."""
