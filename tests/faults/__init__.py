"""What goes wrong around a store: disks, permissions, handles, clocks, time zones, forks, cancelled tasks, exits.

Of each fault the same is asked: whoever calls gets an error of ours or success, nothing acknowledged is lost, nothing
is half there, and the store is usable again when the fault is over.
"""
