"""The outbox: messages to exposures and announcements, delivered at least once, and what people do with the rest."""
