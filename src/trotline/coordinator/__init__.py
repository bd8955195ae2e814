"""The coordinator: schedules, seeding, rescue, retention, alerts. Never fetches; workers run without it."""
