"""At-least-once delivery: the outbox, one worker per receiver, rate budgets, retries, and the heartbeat."""
