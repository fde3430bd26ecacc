package cli

import (
	"context"
	"os"

	"github.com/holdfast-dev/holdfast/store"
)

// An Option configures Command.
type Option func(*app)

// A Backend opens stores by their DSN, for --store, DURABLE_STORE and profiles.
// The program chooses which ones it links.
type Backend struct {
	Name string // for people: "sqlite"
	// Takes reports whether a DSN is for this backend. The first that does gets it.
	Takes func(dsn string) bool
	// Open opens a store that exists. It must neither create one nor change its schema:
	// looking at a store changes nothing.
	Open func(ctx context.Context, dsn string) (store.Store, error)
	// Look opens, with its option ReadOnly, a store that Open finds to take no writes (store.ErrReadOnly), or
	// on which no engine opens; nil: such a store cannot be looked at.
	Look func(ctx context.Context, dsn string) (store.Store, error)
	// Schema opens the schema of a store, which may be older or newer than this
	// program's; nil: this backend has none.
	Schema func(dsn string) (Schema, error)
}

// Schema gives access to the schema of a store. sqlite.OpenSchema and
// postgres.OpenSchema return one.
type Schema interface {
	store.Migrator
	store.Backuper
	Close() error
}

// Stores lets commands act on the stores of these backends, by DSN. Without it a
// mounted command can act on the engine's store and on servers only.
func Stores(b ...Backend) Option {
	return func(a *app) { a.backends = append(a.backends, b...) }
}

// EngineSchema says how the schema of the mounted engine's store is opened, for
// the schema commands.
func EngineSchema(open func() (Schema, error)) Option {
	return func(a *app) { a.schema = open }
}

// Program sets the words with which printed commands begin, up to where this command
// tree is mounted: "go", "run", "./shop". Without it they begin as the program was
// called.
func Program(words ...string) Option {
	return func(a *app) { a.program = words }
}

func defaults(a *app) {
	a.exit = os.Exit
	a.getenv = os.Getenv
}
