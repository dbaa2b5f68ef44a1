"""Orders of a shop, and an alert for each order above its customer's limit."""
