package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/store"
)

func schemaCommand(a *app) *cobra.Command {
	g := a.group("schema", "See and change the schema of a store", `schema shows the version of a store's schema, brings it up to date, and copies and
restores the store. What an upgrade does:
`+host.Page("operating-schema.md"), `  durable schema status
  durable schema migrate --dry-run
  durable schema backup app.backup.db`)
	var dryRun, yes bool
	migrate := a.command(spec{
		use: "migrate", short: "Bring the schema up to date, after a backup",
		example: `  durable schema migrate --dry-run
  durable schema migrate --yes`,
		do: func(c *invocation, _ []string) error { return migrate(c, dryRun, yes) },
	})
	migrate.Flags().BoolVar(&dryRun, "dry-run", false, "say which steps are missing, and change nothing")
	migrate.Flags().BoolVar(&yes, "yes", false, "do not ask")
	var restoreYes bool
	restore := a.command(spec{
		use: "restore BACKUP", short: "Put a backup in the place of what the store holds", min: 1, max: 1,
		long: `restore goes back to a backup: a file of SQLite, a schema of PostgreSQL. What was there
is kept, and named. What happened since is gone from the runs, but not from the world.
Nobody may use the store meanwhile.`,
		example: `  durable schema restore app.db.v1-20261121T084116.000000Z.backup`,
		do:      func(c *invocation, args []string) error { return restore(c, args[0], restoreYes) },
	})
	restore.Flags().BoolVar(&restoreYes, "yes", false, "do not ask")
	g.AddCommand(
		a.command(spec{
			use: "status", short: "Show the version of the schema, and what is missing",
			example: `  durable schema status`,
			do:      func(c *invocation, _ []string) error { return schemaStatus(c) },
		}),
		migrate,
		a.command(spec{
			use: "backup TO", short: "Copy the store while it is in use", min: 1, max: 1,
			long: `backup copies everything as it was at one moment: to a new file for SQLite, to a new
schema of the same database for PostgreSQL.`,
			example: `  durable schema backup app.backup.db`,
			do:      func(c *invocation, args []string) error { return backup(c, args[0]) },
		}),
		restore,
	)
	return g
}

// openSchema opens the schema of what the command acts on.
func openSchema(c *invocation) (Schema, error) {
	p, err := c.place()
	if err != nil {
		return nil, err
	}
	var sc Schema
	switch {
	case p.Server != "":
		return nil, &show.Failure{Code: "needs_store", Exit: ExitUsage, Message: "The schema is of a store, not of a server.", Next: "Name its store: --store DSN"}
	case p.Store == "" && c.schema == nil:
		return nil, &show.Failure{Code: "needs_store", Exit: ExitUsage, Message: "This program does not say how its schema is opened (cli.EngineSchema).", Next: "Name its store to the durable command: --store DSN"}
	case p.Store == "":
		sc, err = c.schema()
	default:
		var b Backend
		if b, err = c.backend(p); err != nil {
			return nil, err
		}
		if b.Schema == nil {
			return nil, show.Usage("a store of %s has no schema", b.Name)
		}
		sc, err = b.Schema(p.Store)
	}
	if err != nil {
		return nil, c.unreachable(p, err)
	}
	c.done = append(c.done, func() { _ = sc.Close() })
	return sc, nil
}

// schemaState is what status and migrate print with --json.
type schemaState struct {
	Have    int          `json:"have"`
	Know    int          `json:"know"`
	Steps   []schemaStep `json:"steps"`
	Backup  bool         `json:"backup_first"`
	DryRun  bool         `json:"dry_run,omitempty"`
	Made    string       `json:"backup,omitempty"`
	Changed bool         `json:"changed"`
}

type schemaStep struct {
	Version int              `json:"version"`
	Name    string           `json:"name"`
	Rows    map[string]int64 `json:"rows,omitempty"`
}

func stateOf(p *store.MigrationPlan) schemaState {
	s := schemaState{Have: p.Have, Know: p.Know, Backup: p.Backup, Steps: []schemaStep{}}
	for _, st := range p.Steps {
		s.Steps = append(s.Steps, schemaStep{st.Version, st.Name, st.Rows})
	}
	return s
}

// schemaFailed explains an error of a schema that was opened: opening it reads nothing yet.
func schemaFailed(c *invocation, err error) error {
	p, perr := c.place()
	if perr != nil || errors.Is(err, store.ErrInvalid) { // the name of the copy is wrong
		return err
	}
	return c.unreachable(p, err)
}

// planned opens the schema and says what is missing in it. A name under which there is no store,
// which may be mistyped, is not taken for one that is to be made.
func planned(c *invocation) (sc Schema, p store.MigrationPlan, err error) {
	if sc, err = openSchema(c); err != nil {
		return nil, p, err
	}
	if p, err = sc.Plan(c.ctx); err != nil {
		return nil, p, schemaFailed(c, err)
	}
	if at, err := c.place(); err == nil && p.Have == 0 {
		return nil, p, &show.Failure{
			Code: "unavailable", Exit: ExitUnreachable, Message: fmt.Sprintf("There is no store in %s.", target.Mask(at.Store)),
			Next: "Check " + at.From + ". The first program that opens a store makes it.",
		}
	}
	return sc, p, nil
}

func schemaStatus(c *invocation) error {
	_, p, err := planned(c)
	if err != nil {
		return err
	}
	return c.print(stateOf(&p), func() {
		switch {
		case len(p.Steps) == 0:
			c.out.Printf("Schema %d, as this program needs it.\n", p.Have)
		default:
			c.out.Printf("Schema %d, this program needs %d. Plan: %s\n", p.Have, p.Know, c.self("schema", "migrate", "--dry-run"))
		}
	})
}

func migrate(c *invocation, dryRun, yes bool) error {
	sc, p, err := planned(c)
	if err != nil {
		return err
	}
	state := stateOf(&p)
	if dryRun {
		state.DryRun = true
		return c.print(state, func() {
			steps(c, c.out, &p)
			if len(p.Steps) == 0 {
				c.out.Printf("Dry run: nothing changed.\n")
				return
			}
			c.out.Printf("Dry run: nothing changed. Apply: %s\n", c.self("schema", "migrate"))
		})
	}
	if len(p.Steps) == 0 {
		return c.print(state, func() { c.out.Printf("Schema %d, as this program needs it. Nothing to do.\n", p.Have) })
	}
	if !c.flags.json {
		steps(c, c.err, &p)
	}
	if err := confirm(c, yes, "Migrate from %d to %d?", p.Have, p.Know); err != nil {
		return err
	}
	m, err := sc.Migrate(c.ctx)
	if err != nil {
		return err
	}
	state = schemaState{Have: m.To, Know: p.Know, Steps: state.Steps, Made: m.Backup, Changed: m.From != m.To}
	return c.print(state, func() {
		c.out.Printf("Schema %d, was %d, in %s.\n", m.To, m.From, show.Length(m.Took))
		if m.Backup != "" {
			c.out.Printf("Backup: %s. Back: %s\n", show.Escape(m.Backup), c.self("schema", "restore", m.Backup))
		}
	})
}

// steps prints what a migration does: "0004 attempt index: 5 runs; backup first".
func steps(c *invocation, s *show.Stream, p *store.MigrationPlan) {
	if len(p.Steps) == 0 {
		s.Printf("Schema %d, as this program needs it.\n", p.Have)
		return
	}
	for i, st := range p.Steps {
		line := fmt.Sprintf("%04d %s", st.Version, show.Escape(st.Name))
		var touched []string
		for name, n := range st.Rows {
			touched = append(touched, fmt.Sprintf("%s of %s", count.Of(n, "row"), show.Escape(name)))
		}
		slices.Sort(touched)
		for j, t := range touched {
			line += map[bool]string{true: ": ", false: ", "}[j == 0] + t
		}
		if i == 0 && p.Backup {
			line += "; backup first"
		}
		s.Printf("%s\n", line)
	}
}

func backup(c *invocation, to string) error {
	sc, _, err := planned(c)
	if err != nil {
		return err
	}
	if err := sc.Backup(c.ctx, to); err != nil {
		var file *fs.PathError
		var link *os.LinkError
		if errors.As(err, &file) || errors.As(err, &link) { // the store was read just before
			return &show.Failure{Code: "backup", Exit: ExitFailed, Err: err, Message: fmt.Sprintf("The backup %s cannot be written: %s", to, err), Next: "The store is as it was."}
		}
		return schemaFailed(c, err)
	}
	return c.print(map[string]string{"backup": to}, func() {
		c.out.Printf("Backed up to %s. Back: %s\n", show.Escape(to), c.self("schema", "restore", to))
	})
}

func restore(c *invocation, from string, yes bool) error {
	sc, err := openSchema(c)
	if err != nil {
		return err
	}
	if err := confirm(c, yes, "Replace what the store holds by %s? Steps done since will be done again.", from); err != nil {
		return err
	}
	kept, err := sc.Restore(c.ctx, from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &show.Failure{Code: "not_found", Exit: ExitNotFound, Message: fmt.Sprintf("There is no backup %s.", from), Next: "Nothing was changed.", Err: err}
	case errors.Is(err, store.ErrCorrupt): // it says which of the two is damaged, and what to do
		return show.Refused("damaged", "Nothing was changed.", "%s", err)
	case err != nil:
		return err
	}
	return c.print(map[string]string{"restored": from, "kept": kept}, func() {
		c.out.Printf("Restored %s.\n", show.Escape(from))
		if kept != "" {
			c.out.Printf("What was there is kept as %s.\n", show.Escape(kept))
		}
	})
}
