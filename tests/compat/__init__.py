"""Stores that earlier releases wrote, on every engine: opened, read whole and gone on with by the present code."""
