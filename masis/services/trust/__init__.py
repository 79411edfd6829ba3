"""How far the audit can be trusted: figures from decisions, their summary, and the guarantee in
force.
"""
