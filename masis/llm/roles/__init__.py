"""The roles with a language model, with their prompts and the replies they ask for."""
