"""Orders of a shop, and an alert for each that is above its customer's limit."""
