"""How jobs ended, in a message to their owners: decided from changes of pods and Jobs, stored with the outbox."""
