package outline

import "github.com/holdfast-dev/holdfast/store"

// cancelling describes a run whose cancel is recorded but not yet carried out:
// if no executor has the run, its status alone would not show the request.
func (b *Builder) cancelling(o *Outline, v *Verdict) {
	row := &o.Run
	if !row.CancelAsked || row.Status.Terminal() {
		return
	}
	parked := row.Status == store.Interrupted && row.Code != "" && row.Code != store.CodeNotRegistered && !row.Paused
	t := say(strong("A cancel is recorded"), "; the process that takes it up carries it out.")
	switch {
	case o.Attended:
		t = say(strong("A cancel is recorded"), ": no further step begins, and it ends when what is under way has.")
	case parked:
		t = say(strong("A cancel is recorded"), "; it is carried out when somebody resumes it.")
	case o.KnowExecutors && !o.Served:
		t = say(strong("A cancel is recorded"), "; it is carried out once a process that serves ", code(row.Workflow), " is started.")
	}
	v.More = append([]Text{t}, v.More...)
}
