"""What the kept studies say taken together: the finding of each, its direction, whether
they agree.
"""
