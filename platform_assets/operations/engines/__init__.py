"""Two engines that prove each other: tables admitted to a second one, and what differs between the two."""
