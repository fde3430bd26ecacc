package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

func checkpointsMigrate(a *app) *cobra.Command {
	var dryRun, yes bool
	cmd := a.command(spec{
		use: "migrate", short: "Bring the store to the format of this program, after a backup",
		long: `migrate is schema migrate. Checkpoints themselves are never rewritten: every version of
the library reads those of earlier ones.`,
		example: `  durable checkpoints migrate --dry-run
  durable checkpoints migrate --yes`,
		do: func(c *invocation, _ []string) error { return migrate(c, dryRun, yes) },
	})
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say which steps are missing, and change nothing")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func checkpointsRestore(a *app) *cobra.Command {
	var yes bool
	cmd := a.command(spec{
		use: "restore BACKUP", short: "Put back what a migration has backed up", min: 1, max: 1,
		long:    `restore is schema restore: the way back after a migration.`,
		example: `  durable checkpoints restore app.db.v1-20261121T084116.000000Z.backup --yes`,
		do:      func(c *invocation, args []string) error { return restore(c, args[0], yes) },
	})
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func checkpointsExport(a *app) *cobra.Command {
	var output string
	cmd := a.command(spec{
		use: "export ID", short: "Write a run with its whole history to a file", min: 1, max: 1, ids: true,
		long: `export writes a run as lines of JSON that import reads on any store, to standard output
or to a new file. What is encrypted stays encrypted.`,
		example: `  durable checkpoints export order-42 --output order-42.run
  durable checkpoints import order-42.run --store other.db`,
		do: func(c *invocation, args []string) error { return export(c, args[0], output) },
	})
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this new `FILE`")
	return cmd
}

func export(c *invocation, id, output string) (err error) {
	l, err := c.local()
	if err != nil {
		return err
	}
	if output == "" {
		return l.Lost(id, operate.On(l.Engine).Export(c.ctx, id, c.out.W))
	}
	// Only a new file: a mistyped name must not overwrite another one.
	f, err := os.OpenFile(output, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return show.Refused("exists", "Choose another name.", "There is a file %s already.", output)
	}
	if err != nil {
		return err
	}
	err = operate.On(l.Engine).Export(c.ctx, id, f)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err != nil {
		_ = os.Remove(output) // half a file is useless
		return l.Lost(id, err)
	}
	return c.print(map[string]string{"id": id, "file": output}, func() {
		c.out.Printf("Exported %s to %s\n", show.Escape(id), show.Escape(output))
	})
}

func checkpointsImport(a *app) *cobra.Command {
	var newID string
	cmd := a.command(spec{
		use: "import FILE", short: "Make a run of a file that export has written", min: 1, max: 1,
		long: `import reads and checks the whole file before it writes anything. A run that had not
ended is interrupted here, and waits for resume: only you know that nobody continues it
where it came from.`,
		example: `  durable checkpoints import order-42.run
  durable checkpoints import - --id order-42-copy < order-42.run
  durable resume order-42`,
		do: func(c *invocation, args []string) error { return importRun(c, args[0], newID) },
	})
	asksNothing(cmd)
	cmd.Flags().StringVar(&newID, "id", "", "make a copy under this `ID`")
	return cmd
}

func importRun(c *invocation, file, newID string) error {
	l, err := c.local()
	if err != nil {
		return err
	}
	var r io.Reader = c.cmd.InOrStdin()
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return show.Usage("the file cannot be read: %s", err)
		}
		defer func() { _ = f.Close() }()
		if is, err := f.Stat(); err == nil && is.IsDir() {
			return show.Usage("%s is a directory, and import reads one file that export has written", file)
		}
		r = f
	}
	got, err := operate.On(l.Engine).Import(c.ctx, r, operate.ImportOptions{NewID: newID})
	return imported(c, got, err, func(string) string {
		return "Make a copy: " + c.self("checkpoints", "import", file, "--id", "NEW")
	})
}

// imported says what an import made. instead is what to do if the run exists.
func imported(c *invocation, got operate.Imported, err error, instead func(id string) string) error {
	var exists *store.ExistsError
	if errors.As(err, &exists) {
		return show.Refused("exists", instead(exists.RunID), "Session %s exists already.", exists.RunID)
	}
	if err != nil {
		return err
	}
	return c.print(map[string]any{"id": got.RunID, "workflow": got.Workflow, "status": got.Status, "events": got.Events}, func() {
		c.out.Printf("Imported %s: %s, %s.\n", show.Escape(got.RunID), got.Status, count.Of(got.Events, "event"))
		if got.Status == store.Interrupted {
			c.say("Resume with: %s", c.self("resume", got.RunID))
		}
	})
}

func checkpointsDelete(a *app) *cobra.Command {
	var dryRun, yes bool
	cmd := a.command(spec{
		use: "delete ID", short: "Delete a run with all its checkpoints", min: 1, max: 1, ids: true,
		long: `delete removes a run as a whole, with its history: a single checkpoint never is. One that
is executed at the moment is refused.`,
		example: `  durable checkpoints delete order-40 --dry-run
  durable checkpoints delete order-40 --yes
  durable checkpoints export order-40 --output order-40.run`,
		do: func(c *invocation, args []string) error { return deleteRun(c, args[0], dryRun, yes) },
	})
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be deleted, and delete nothing")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func deleteRun(c *invocation, id string, dryRun, yes bool) error {
	l, err := c.local()
	if err != nil {
		return err
	}
	s, err := l.Run(c.ctx, id)
	if err != nil {
		return err
	}
	if s.Live && !s.Terminal() {
		return show.Refused("in_progress", c.follow(id), "%s", c.inProgress(id, s.Owner))
	}
	what := fmt.Sprintf("%s (%s, %s)", id, s.Status, count.Of(int(s.LastSeq), "event"))
	if dryRun {
		return c.print(cleaned{Removed: 1, IDs: []string{id}, DryRun: true}, func() {
			c.out.Printf("Would delete %s.\nDry run: nothing changed. Apply: %s\n", show.Escape(what), c.self("checkpoints", "delete", id, "--yes"))
		})
	}
	if err := confirm(c, yes, "Delete %s for good?", what); err != nil {
		return err
	}
	n, err := l.Store.Delete(c.ctx, store.Deletion{RunIDs: []string{id}, Epochs: []int64{s.Info.Run.Epoch}, Force: true})
	if errors.Is(err, store.ErrFenced) {
		return show.Refused("changed", "Look again: "+c.self("sessions", "show", id), "%s was started again or has gone on since; nothing was deleted.", id)
	}
	if err != nil {
		return err
	}
	return c.print(cleaned{Removed: n}, func() { c.out.Printf("Deleted %s.\n", show.Escape(id)) })
}
