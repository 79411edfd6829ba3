"""Starting an audit and watching it."""
