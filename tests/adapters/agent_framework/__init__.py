"""Tests of the adapter for the Agent Framework."""
