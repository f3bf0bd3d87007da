"""Tests of the adapter for the Claude Agent SDK."""
