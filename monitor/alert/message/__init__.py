"""Message composition: notifications become documents, and documents become markup for each receiver."""
