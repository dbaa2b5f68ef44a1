"""Taxi trips in a stream with automatic scaling, and their fares copied by Spark."""
