"""Planning: facts, a policy and `now` in, a plan out. Unknown is never taken for permission."""
