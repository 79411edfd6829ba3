"""The roles without a language model: drafter, verifier, critic, reviser, evaluator."""
