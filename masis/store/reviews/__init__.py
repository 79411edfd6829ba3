"""What people decide: the decision log, the state of a case, drafts."""
