"""Writers are killed at any moment: what was acknowledged is there once, what was not is there wholly or not at all.

Every writer follows strands. A strand is a series of deeds that chance draws from a seed, so that whoever knows how
many of its deeds were acknowledged knows what the store must hold: that, or that and the deed which was under way.
"""
