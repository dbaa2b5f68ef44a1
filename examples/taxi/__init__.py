"""Taxi trips in a stream that scales by itself, and their fares copied by Spark."""
