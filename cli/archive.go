package cli

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/archive"
	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Archive names the archive of the mounted program, for history and archive. kind
// is what it is called there: "git", "dir".
func Archive(kind string, a archive.Archive) Option {
	return func(app *app) { app.archive, app.archiveKind = a, kind }
}

// archiveFlags say where an archive is.
type archiveFlags struct{ git, dir, prefix string }

func (f *archiveFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.git, "git", "", "the archive in the git repository `DIR`; without it the program's own archive, or the repository of the current directory")
	fl.StringVar(&f.dir, "dir", "", "the archive in the directory `DIR`")
	fl.StringVar(&f.prefix, "prefix", "", "the prefix of the refs, if it is not "+archive.DefaultPrefix)
}

// openArchive opens the archive that flags name, or else the program's, or else the
// git repository of the current directory.
func openArchive(c *invocation, f archiveFlags) (archive.Archive, string, error) {
	switch {
	case f.git != "" && f.dir != "":
		return nil, "", show.Usage("name one of --git and --dir, not both")
	case f.dir != "":
		if _, err := os.Stat(f.dir); err != nil { // looking must not create it
			return nil, "", &show.Failure{Code: "unavailable", Exit: ExitUnreachable, Message: "The archive cannot be opened: " + err.Error(), Next: "Check --dir."}
		}
		a, err := archive.OpenDir(f.dir)
		if err != nil {
			return nil, "", archiveFailed(c, err)
		}
		c.done = append(c.done, func() { _ = a.Close() })
		return a, "dir", nil
	case f.git == "" && c.archive != nil:
		return c.archive, c.archiveKind, nil
	}
	a, err := archive.OpenGit(c.ctx, show.OrElse(f.git, "."), archive.GitOptions{Prefix: f.prefix})
	if err != nil {
		return nil, "", archiveFailed(c, err)
	}
	return a, "git", nil
}

// archiveFailed explains an error of an archive.
func archiveFailed(c *invocation, err error) error {
	f := &show.Failure{Code: "archive", Exit: ExitFailed, Message: err.Error(), Err: err}
	switch {
	case errors.Is(err, archive.ErrNotFound):
		f.Code, f.Exit, f.Next = "not_found", ExitNotFound, "List: "+c.self("archive", "list")
	case errors.Is(err, archive.ErrUnavailable):
		f.Code, f.Exit, f.Next = "unavailable", ExitUnreachable, "Name the archive: --git DIR or --dir DIR"
		if c.engine != nil && c.archive == nil {
			f.Next += "\nOr give the command of this program its archive: cli.Archive"
		}
	}
	return f
}

// past is an archived run as --json prints it.
type past struct {
	ID         string `json:"id"`
	Workflow   string `json:"workflow"`
	Status     string `json:"status"`
	StartedAt  string `json:"started_at,omitempty"`
	EndedAt    string `json:"ended_at,omitempty"`
	DurationMS int64  `json:"duration_ms"`
	Error      string `json:"error,omitempty"`
	Source     string `json:"source"`

	started store.Time
}

func historyCommand(a *app) *cobra.Command {
	var f archiveFlags
	var statuses, workflows []string
	var limit int
	cmd := a.command(spec{
		use: "history", short: "List archived runs, newest first", lists: true,
		long: `history lists the runs that are archived: through a server where one is named, else
straight from the archive, a git repository (--git, or the current directory) or a
directory (--dir).`,
		example: `  durable history --status completed
  durable history --git /srv/history.git
  durable archive show order-40`,
		do: func(c *invocation, _ []string) error {
			list, err := history(c, f)
			if err != nil {
				return err
			}
			list = slices.DeleteFunc(list, func(p past) bool {
				return len(statuses) > 0 && !slices.Contains(statuses, p.Status) || len(workflows) > 0 && !slices.Contains(workflows, p.Workflow)
			})
			return showHistory(c, list, limit)
		},
	})
	f.register(cmd)
	cmd.Flags().StringSliceVar(&statuses, "status", nil, "only runs in this status")
	cmd.Flags().StringSliceVar(&workflows, "workflow", nil, "only runs of this workflow")
	cmd.Flags().IntVar(&limit, "limit", 100, "how many at most; 0: all")
	return cmd
}

// history reads what is archived, newest first.
func history(c *invocation, f archiveFlags) ([]past, error) {
	p, err := c.place()
	if err == nil && p.Server != "" && f.git == "" && f.dir == "" {
		r, err := target.Connect(p, c.commands)
		if err != nil {
			return nil, err
		}
		h, err := r.Archived(c.ctx)
		if err != nil {
			return nil, err
		}
		return remotePast(h), nil
	}
	var f2 *show.Failure
	if err != nil && errors.As(err, &f2) && (c.flags.Store+c.flags.Server+c.flags.Profile != "" || f2.Code == "profile") {
		return nil, err // a named target must exist, but naming one is optional
	}
	a, kind, err := openArchive(c, f)
	if err != nil {
		return nil, err
	}
	return archived(c, a, kind)
}

func remotePast(h client.History) []past {
	list := []past{}
	for _, r := range h.Runs {
		list = append(list, past{r.RunID, r.Workflow, r.Status, stamp(r.StartedAt), stamp(r.EndedAt), r.DurationMS, r.Error, h.Source, store.TimeOf(r.StartedAt)})
	}
	return list
}

func stamp(t time.Time) string { return show.RFC3339(store.TimeOf(t)) }

// archived lists an archive, newest first. It skips a run that cannot be read, with a
// warning.
func archived(c *invocation, a archive.Archive, kind string) ([]past, error) {
	list := []past{}
	for r, err := range a.List(c.ctx) {
		if errors.Is(err, archive.ErrUnreadable) {
			c.say("%s", show.Escape(err.Error()))
			continue
		}
		if err != nil {
			return nil, archiveFailed(c, err)
		}
		began := r.StartedAt
		if began.IsZero() {
			began = r.CreatedAt
		}
		list = append(list, past{r.ID, r.Workflow, string(r.Status), stamp(began), stamp(r.EndedAt), r.DurationMS, r.Error, kind, store.TimeOf(began)})
	}
	slices.SortFunc(list, func(a, b past) int {
		if a.started != b.started {
			return int(min(max(b.started-a.started, -1), 1))
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list, nil
}

func showHistory(c *invocation, list []past, limit int) error {
	if len(list) == 0 {
		c.say("No archived sessions.")
		return nil
	}
	total := len(list)
	if limit > 0 && total > limit {
		list = list[:limit]
	}
	t := show.Table{Head: []string{"ID", "WORKFLOW", "STATUS", "STARTED", "DURATION", "SOURCE"}}
	for i := range list {
		p := &list[i]
		if c.flags.json {
			if err := c.out.JSON(p); err != nil {
				return err
			}
			continue
		}
		took := (time.Duration(p.DurationMS) * time.Millisecond).String()
		if c.out.TTY {
			took = show.Length(time.Duration(p.DurationMS) * time.Millisecond)
		}
		t.Rows = append(t.Rows, []string{p.ID, p.Workflow, p.Status, c.out.At(p.started), took, p.Source})
	}
	if !c.flags.json {
		c.out.Table(t)
	}
	if len(list) < total {
		c.say("%d of %d shown; more with --limit", len(list), total)
	}
	return nil
}

func archiveCommand(a *app) *cobra.Command {
	var f archiveFlags
	g := a.group("archive", "List, show, write and restore archived runs", `archive works on the copies of runs that are kept outside of the store: in a git
repository, one ref a run, or in a directory. What they hold:
`+host.Page("archive.md"), `  durable archive list --git /srv/history.git
  durable archive show order-40
  durable archive store order-40 --dir /srv/history`)
	with := func(cmd *cobra.Command) *cobra.Command { f.register(cmd); return cmd }
	g.AddCommand(
		with(a.command(spec{
			use: "list", aliases: []string{"ls"}, short: "List what is archived",
			example: `  durable archive list --git /srv/history.git`,
			do: func(c *invocation, _ []string) error {
				to, kind, err := openArchive(c, f)
				if err != nil {
					return err
				}
				list, err := archived(c, to, kind)
				if err != nil {
					return err
				}
				return showHistory(c, list, 0)
			},
		})),
		with(a.command(spec{
			use: "show ID", short: "Show an archived run with its events", min: 1, max: 1,
			example: `  durable archive show order-40
  durable archive show order-40 --json`,
			do: func(c *invocation, args []string) error { return showArchived(c, f, args[0]) },
		})),
		with(a.command(spec{
			use: "store ID", short: "Archive a run now", min: 1, max: 1, ids: true,
			example: `  durable archive store order-40 --git /srv/history.git`,
			do:      func(c *invocation, args []string) error { return archiveNow(c, f, args[0]) },
		})),
		with(a.command(spec{
			use: "restore ID", short: "Bring an archived run back into the store", min: 1, max: 1,
			long: `restore makes the run again that was archived, under its id and with its history, in a
store that does not have it. One that had not ended waits for resume: make sure that
nobody still executes it elsewhere.`,
			example: `  durable archive restore order-40 --git /srv/history.git
  durable resume order-40`,
			do: func(c *invocation, args []string) error { return unarchive(c, f, args[0]) },
		})),
	)
	return g
}

func showArchived(c *invocation, f archiveFlags, id string) error {
	a, kind, err := openArchive(c, f)
	if err != nil {
		return err
	}
	e, err := a.Get(c.ctx, id)
	if err != nil {
		return archiveFailed(c, err)
	}
	return c.print(struct {
		archive.Run
		Source string          `json:"source"`
		Trace  []archive.Event `json:"trace"`
	}{e.Run, kind, e.Trace}, func() {
		out := c.out
		out.Printf("%s  %s  %s\n", show.Escape(e.ID), show.Escape(e.Workflow), e.Status)
		out.Printf("Started  %s, took %s, %s\n", out.At(store.TimeOf(e.CreatedAt)), show.Length(time.Duration(e.DurationMS)*time.Millisecond), count.Of(len(e.Trace), "event"))
		for _, line := range [][2]string{{"Input", string(e.Input)}, {"Output", string(e.Output)}, {"Error", e.Error}, {"Asks", e.Prompt}, {"Hidden", e.Hidden}} {
			if line[1] != "" {
				out.Printf("%-8s %s\n", line[0], show.Escape(line[1]))
			}
		}
		for _, ev := range e.Trace {
			mark := ""
			if ev.Abandoned {
				mark = "  (left behind)"
			}
			out.Printf("  %4d  %s  %s%s%s\n", ev.Seq, out.At(store.TimeOf(ev.At)), show.Escape(ev.Name+" "+ev.Key), show.AttemptSuffix(int(ev.Attempt)), mark)
		}
	})
}

func archiveNow(c *invocation, f archiveFlags, id string) error {
	l, err := c.local()
	if err != nil {
		return err
	}
	a, kind, err := openArchive(c, f)
	if err != nil {
		return err
	}
	var file bytes.Buffer
	if err := operate.On(l.Engine).Export(c.ctx, id, &file); err != nil {
		return l.Lost(id, err)
	}
	if err := a.Store(c.ctx, id, file.Bytes()); err != nil {
		return archiveFailed(c, err)
	}
	return c.print(map[string]string{"id": id, "source": kind}, func() { c.out.Printf("Archived %s (%s).\n", show.Escape(id), kind) })
}

func unarchive(c *invocation, f archiveFlags, id string) error {
	l, err := c.local()
	if err != nil {
		return err
	}
	a, _, err := openArchive(c, f)
	if err != nil {
		return err
	}
	e, err := a.Get(c.ctx, id)
	if err != nil {
		return archiveFailed(c, err)
	}
	got, err := operate.On(l.Engine).Import(c.ctx, bytes.NewReader(e.File), operate.ImportOptions{})
	return imported(c, got, err, func(id string) string {
		return "Show it: " + c.self("sessions", "show", id) + "\nPut the archived one in its place once it is deleted: " + c.self("checkpoints", "delete", id, "--dry-run")
	})
}
