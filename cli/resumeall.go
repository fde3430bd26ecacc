package cli

import (
	"cmp"
	"errors"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// manyFlags select the runs of resume --all, as they were given.
type manyFlags struct {
	all                        bool
	workflows, codes, statuses []string
}

func (f *manyFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.all, "all", false, "every interrupted or failed run that the flags below select")
	fl.StringSliceVar(&f.workflows, "workflow", nil, "with --all: only runs of this workflow")
	fl.StringSliceVar(&f.codes, "code", nil, "with --all: only runs that stopped with this code, such as definition_changed")
	fl.StringSliceVar(&f.statuses, "status", nil, "with --all: only interrupted, or only failed")
}

// which returns the runs that the flags select, or says what is wrong with them.
func (f *manyFlags) which(args []string, one resumeFlags) (w target.Which, err error) {
	selects := len(f.workflows) + len(f.codes) + len(f.statuses)
	switch {
	case !f.all && selects > 0:
		return w, show.Usage("--workflow, --code and --status go with --all")
	case f.all && len(args) > 0:
		return w, show.Usage("name one run, or say --all")
	case f.all && one.fromCheckpoint != "":
		return w, show.Usage("--from-checkpoint is a checkpoint of one run")
	}
	w = target.Which{Workflows: f.workflows, Codes: f.codes}
	for _, s := range f.statuses {
		if s != string(store.Interrupted) && s != string(store.Failed) {
			return w, show.Usage("--status %s: resume --all takes runs that are interrupted or failed", s)
		}
		w.Statuses = append(w.Statuses, store.Status(s))
	}
	return w, nil
}

// resumeAll resumes the runs of w, each as resume --detach does: a program that serves them
// executes them, for nobody can follow many runs in one terminal.
func resumeAll(c *invocation, w target.Which, f resumeFlags) error {
	t, err := c.target()
	if err != nil {
		return err
	}
	many := &many{c: c, dry: f.dryRun, says: "%s resumed%s.\n", would: "%s would be resumed%s.\n"}
	o := operate.ResumeOptions{ResetFailures: f.resetFailures, Force: f.force, DryRun: f.dryRun}
	l, isLocal := t.(*target.Local)
	if !isLocal || f.dryRun {
		return many.end(t.ResumeAll(c.ctx, w, o, many.one))
	}
	dry := o
	dry.DryRun = true
	return handOver(c, l, many,
		func(each func(id string, refused error)) error { return l.ResumeAll(c.ctx, w, dry, each) },
		func(to *target.Local, id string) error {
			it := w
			it.IDs = []string{id}
			no := errors.New("it has changed since it was listed, and is none of those that were asked for")
			err := to.ResumeAll(c.ctx, it, o, func(_ string, refused error) { no = refused })
			return cmp.Or(err, no)
		})
}
