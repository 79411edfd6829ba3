"""The pages of the team: leases, case work, adjudication, policy, rubric and progress."""
