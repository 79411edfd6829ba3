"""How far the audit can be trusted: what decisions say about it, the short answer, the guarantee in
force.
"""
