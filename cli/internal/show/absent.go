package show

import "github.com/holdfast-dev/holdfast/durable"

// NothingToResume says that there is no run to resume.
func NothingToResume(c *Commands) *Failure {
	return &Failure{Code: "nothing_to_resume", Exit: ExitNotFound, Message: "Nothing to resume. List: " + c.Self("sessions", "ls"), Err: durable.ErrNotFound}
}

// UnknownRun says that a store has no such run.
func UnknownRun(id string, c *Commands) *Failure {
	return &Failure{Code: "not_found", Exit: ExitNotFound, Message: "Session not found: " + id, Next: "List: " + c.Self("sessions", "ls"), Err: durable.ErrNotFound}
}
