package dashboard

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
)

// What is advised to somebody who asks over HTTP is something he can do: a route, in
// the form "POST /api/runs/order-42/pause", or a command of the terminal where there
// is none. A test carries out all of it.

// nextOf is what to do about an error of one run; else otherwise.
func (h *handler) nextOf(err error, otherwise string) string {
	var (
		damaged *durable.DamagedError
		busy    *durable.BusyError
		no      *durable.NotResumableError
		at      *durable.CheckpointError
		lost    *durable.UnrecoverableError
	)
	switch {
	case errors.As(err, &damaged):
		return mend(damaged.RunID, errors.Is(err, durable.ErrNoHistory))
	case errors.As(err, &busy) && busy.RunID != "":
		return fmt.Sprintf("pause the run, POST %s, and try again once it is paused", h.runRoute(busy.RunID, "pause"))
	case errors.As(err, &no) && no.Paused:
		return "POST " + h.runRoute(no.RunID, "unpause")
	case errors.As(err, &lost) && lost.Code == durable.CodeE2:
		return "run a program that serves the version of the run"
	case errors.As(err, &at) && at.Seq == 0 && at.Key == "":
		return fmt.Sprintf("POST %s with {\"force\": true} to start it again from its input", h.runRoute(at.RunID, "resume"))
	}
	return otherwise
}

// mend is what to do about a run that is damaged, of which nothing or something is left.
func mend(id string, nothing bool) string {
	return "see what can be done: " + mending(id, nothing).String()
}

func mending(id string, nothing bool) shellCommand {
	c := command("checkpoints repair", id)
	if nothing {
		c = command("checkpoints delete", id)
	}
	c.flag("--dry-run")
	return c
}

func (h *handler) runRoute(id, act string) string {
	return h.options.Prefix + "/api/runs/" + segment(id) + "/" + act
}

// calls are the methods that the engine names in what it advises.
var calls = regexp.MustCompile(`Engine\.(\w+)\(ctx, ("(?:[^"\\]|\\.)*")[^)]*\)( finds, then Engine\.Repair)?`)

// called puts what otherwise says in the place of the methods that a text names.
func called(text string, otherwise func(method, id string) string) string {
	return calls.ReplaceAllStringFunc(text, func(call string) string {
		m := calls.FindStringSubmatch(call)
		id, err := strconv.Unquote(m[2])
		if err != nil {
			return call
		}
		return otherwise(m[1], id)
	})
}

// inRoutes is the advice of the engine for somebody who has the API.
func (h *handler) inRoutes(text string) string {
	return called(text, func(method, id string) string {
		switch method {
		case "Resume", "Unpause", "Jump":
			act := map[string]string{"Resume": "resume", "Unpause": "unpause", "Jump": "jump"}[method]
			return "POST " + h.runRoute(id, act)
		case "History":
			return "GET " + h.runRoute(id, "events")
		}
		return inCommand(method, id)
	})
}

// inCommands is the advice of the engine for somebody who looks at a page.
func inCommands(text string) string { return called(text, inCommand) }

func inCommand(method, id string) string {
	switch method {
	case "Resume":
		return command("resume", id).String()
	case "Unpause":
		return command("unpause", id).String()
	case "History":
		return command("history", id).String()
	case "Verify":
		return command("checkpoints validate", id).String() + " finds, then " + command("checkpoints repair", id).String()
	case "Jump":
		return "Jump back, on its page"
	}
	return "Engine." + method
}

// cannot says why an act that needs no plan is refused; empty: it is not.
func cannot(act string, o *outline.Outline) string {
	run := &o.Run
	ended := run.Status.Terminal()
	switch {
	case o.LastSeq == 0 && act != "edit":
		return fmt.Sprintf("No event of %s is left: nothing can be done with it but to delete what there is.", run.ID)
	case (act == "pause" || act == "unpause" || act == "cancel") && ended:
		return fmt.Sprintf("%s has ended (%s).", run.ID, run.Status)
	case act == "pause" && run.Paused:
		return run.ID + " is paused already."
	case act == "unpause" && !run.Paused:
		return fmt.Sprintf("%s is not paused (%s).", run.ID, run.Status)
	case act == "edit" && !ended && o.Attended:
		return run.ID + " is being executed. Pause it first: then its results can be edited."
	}
	return ""
}
