"""Tests of the adapter for Strands Agents."""
