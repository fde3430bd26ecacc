package pages

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// panel makes the panel that the address asks for; nil: none. It shows a dry run and
// changes nothing.
func (rp *RunPage) panel(r *http.Request, o *outline.Outline, q *view.Query, link func(url.Values) string) (*panelView, error) {
	actions := map[string]string{"resume": web.ActionResume, "jump": web.ActionJump, "fork": web.ActionFork, "edit": web.ActionEdit, "pause": web.ActionPause, "unpause": web.ActionUnpause, "cancel": web.ActionCancel}
	action, known := actions[q.Panel]
	if !known || rp.May(r, action, o.Run.ID) != nil {
		return nil, nil
	}
	id := o.Run.ID
	p := &panelView{
		Name: q.Panel, Close: link(q.With()), URL: rp.Site.Run(id), Action: rp.Site.Run(id) + "/do/" + q.Panel,
		API: rp.Site.Prefix + "/api/runs/" + client.EscapeID(id) + "/" + q.Panel, Who: rp.Who(r),
	}
	for name, values := range q.With() {
		for _, v := range values {
			p.Hidden = append(p.Hidden, name, v)
		}
	}
	p.Hidden = append(p.Hidden, "panel", q.Panel)
	var err error
	switch q.Panel {
	case "resume":
		err = rp.resumePanel(r.Context(), p, o, q)
	case "jump":
		err = rp.jumpPanel(r.Context(), p, o, q)
	case "edit":
		err = rp.editPanel(r, p, o, q)
	case "fork":
		err = rp.forkPanel(r, p, o, q, link)
	default:
		rp.plainPanel(p, o)
	}
	if err != nil {
		return nil, err
	}
	if no := view.Cannot(q.Panel, o); no != "" {
		p.Refused = no
	}
	if p.Refused != "" {
		p.Command = p.Instead // what is refused here is refused in the terminal, too
	}
	p.Serves, err = rp.serves(r.Context(), &o.Run)
	if q.Panel == "pause" || q.Panel == "cancel" || p.Refused != "" {
		p.Serves = ""
	}
	return p, err
}

// resumePanel plans a resume with the options that the address has.
func (rp *RunPage) resumePanel(ctx context.Context, p *panelView, o *outline.Outline, q *view.Query) error {
	id := o.Run.ID
	p.Title, p.Sub = "What Resume will do", "A dry run. Nothing has been changed and no code has run."
	p.Do, p.DoIcon = "Resume "+id, "retry"
	p.API = rp.Site.Prefix + "/api/workflows/" + client.EscapeID(id) + "/resume"
	given := q.Values.Get("planned") != ""
	exhausted := o.Run.Status == store.Failed && o.Current != nil && o.Current.State == outline.Failed
	reset := q.Values.Get("reset") == "1"
	force := q.Values.Get("force") == "1"
	from, _ := strconv.ParseInt(q.Values.Get("from"), 10, 64)
	if from > 0 {
		reset = reset && given
	}
	plan, err := operate.On(rp.Engine).Resume(ctx, id, operate.ResumeOptions{FromCheckpoint: from, ResetFailures: reset, Force: force, DryRun: true})
	if err = p.refuse(rp, err); err != nil {
		return err
	}
	rp.fillPlan(p, &plan, o)
	text := "Steps that have failed get all their attempts again."
	if exhausted && o.Current.Max > 0 {
		text = fmt.Sprintf("%s gets its %s again in any case; this does the same for every other step that is being tried.", o.Current.Key, count.Of(o.Current.Max, "attempt"))
	}
	p.Options = append(p.Options, optionView{"reset", "Reset failures", text, reset}, optionView{"force", "Force", rp.forceText(p, o), force})
	p.places(o, from)
	p.PlaceOf, p.PlaceIs = "from", "Resume from"
	p.Command = view.NewCommand("resume", id)
	if !o.Served {
		p.Command.Flag("--detach") // otherwise it would wait for a process that has the code
	}
	if reset {
		p.Command.Flag("--reset-failures")
		p.field("reset_failures", "flag", "true")
	}
	if force {
		p.Command.Flag("--force")
		p.field("force", "flag", "true")
	}
	if from > 0 {
		p.Command.Flag("--from-checkpoint", strconv.FormatInt(from, 10))
		p.field("from_checkpoint", "number", strconv.FormatInt(from, 10))
	}
	return nil
}

func (rp *RunPage) forceText(p *panelView, o *outline.Outline) string {
	switch {
	case p.Fix == "force":
		return "Needed: a body that must not run twice would run again. " + p.Refused
	case o.Run.Code == durable.CodeDefinitionChanged:
		return "Match what is recorded by name, in any order: the code was changed."
	}
	return "Not needed as far as is known."
}

// jumpPanel plans to take the run back to an event.
func (rp *RunPage) jumpPanel(ctx context.Context, p *panelView, o *outline.Outline, q *view.Query) error {
	to, _ := strconv.ParseInt(q.Values.Get("at"), 10, 64)
	force := q.Values.Get("force") == "1"
	p.Title, p.Sub = fmt.Sprintf("Jump back behind event %d", to), "A dry run. Nothing has been changed. What is left behind stays readable."
	p.Do, p.DoIcon, p.Reason = "Jump back", "branch", true
	p.Hidden = append(p.Hidden, "at", strconv.FormatInt(to, 10))
	plan, err := operate.On(rp.Engine).Jump(ctx, o.Run.ID, to, operate.JumpOptions{Force: force, DryRun: true})
	if err = p.refuse(rp, err); err != nil {
		return err
	}
	rp.fillPlan(p, &plan, o)
	if force || p.Fix == "force" {
		p.Options = append(p.Options, optionView{"force", "Force", rp.forceText(p, o), force})
	}
	p.field("to", "number", strconv.FormatInt(to, 10))
	if force {
		p.field("force", "flag", "true")
	}
	return nil
}

// plainPanel is for acts that need no plan.
func (rp *RunPage) plainPanel(p *panelView, o *outline.Outline) {
	id := o.Run.ID
	p.Command = view.NewCommand(p.Name, id)
	switch p.Name {
	case "pause":
		p.Title, p.Sub, p.Do, p.Reason = "Pause "+id, "Bodies under way end and are recorded; no further one begins. Signals and timers are kept.", "Pause", true
	case "unpause":
		p.Title, p.Sub, p.Do, p.DoIcon = "Unpause "+id, "It goes on where it was; timers whose moment has passed end at once.", "Unpause", "running"
	case "cancel":
		p.Title, p.Sub, p.Do, p.Reason, p.Danger, p.DoIcon = "Cancel "+id, "It ends for good. Bodies under way have their context ended; compensations run.", "Cancel the run", true, true, "cancelled"
	}
}

// serves says which live processes have the code of a run.
func (rp *RunPage) serves(ctx context.Context, run *store.Run) (string, error) {
	executors, err := rp.read.Executors(ctx)
	if err != nil {
		return "", err
	}
	var names []string
	for _, x := range executors {
		if x.Live && store.Takes(x.Serves, run) {
			names = append(names, x.Name)
		}
	}
	what := run.Workflow
	if run.Version != "" {
		what += " v" + strings.TrimPrefix(run.Version, "v")
	}
	switch n := len(names); {
	case n == 0:
		return "No live process serves " + what + view.FromQueue(executors, run) + ": it goes on once one is started.", nil
	case n == 1:
		return names[0] + " serves " + what + " and takes it at once.", nil
	case n <= 3:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1] + " serve " + what + "; one takes it at once.", nil
	default:
		return fmt.Sprintf("%d processes serve %s; one takes it at once.", n, what), nil
	}
}
