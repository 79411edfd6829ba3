"""What the offline screen decides by itself: copies of the evidence, figures and quotations that no
evidence has.
"""
