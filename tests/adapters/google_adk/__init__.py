"""Tests of the adapter for Google's ADK."""
