"""Leads a spider: schedules, seeding, rescue, retention, alerts. Never fetches; workers go on without it."""
