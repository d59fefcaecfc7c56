"""Pure transforms of the sensor tables."""
