"""A mock that plays can be asked and told things from outside: over HTTP, and over the link of the test API."""
