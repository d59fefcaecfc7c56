"""The retail domain with rules of every kind, and without: what proof costs. What rules look into is read anyway."""
