package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
	"github.com/holdfast-dev/holdfast/store/postgres"
)

// A target is a store in one of its modes.
type target struct {
	name, mode string
	// open gives a new, empty store.
	open func() (store.Store, error)
	// create gives the address of a new, empty database, for connect; nil for
	// memory.
	create func(context.Context) (address string, err error)
	// openFloor gives a floor in a new, empty database of the same kind; nil
	// for memory.
	openFloor func(context.Context) (*floor, error)
	// remove deletes the database at an address, which is open no more; nil for memory.
	remove func(address string) error
	// size is how many bytes of the disk the database at an address uses; nil for memory.
	size func(ctx context.Context, address string) (float64, error)
	// settle does at once what the database at an address, or the system below it, would do
	// on its own within a minute after many inserts, so that this does not disturb the next
	// measurement; nil for memory.
	settle func(ctx context.Context, address string) error
}

func (t *target) isDatabase() bool { return t.openFloor != nil }
func (t *target) isMemory() bool   { return t.openFloor == nil }

// isDurable excludes modes that only differ in how they write.
func (t *target) isDurable() bool { return t.isDatabase() && t.mode != modeNormal }

// connect opens the store at an address, which another process may have open too.
func connect(name, mode, address string) (store.Store, error) {
	switch name {
	case "sqlite":
		return openSQLite(address, mode)
	case "postgres":
		return openPostgres(address)
	}
	return nil, fmt.Errorf("a %s store has no address", name)
}

// connectAsDefault is connect, with as many connections as the store has by default: there is no
// floor of one connection to compare it with.
func connectAsDefault(t *target, address string) (store.Store, error) {
	if t.name == "postgres" {
		return postgres.Open(address)
	}
	return connect(t.name, t.mode, address)
}

// openTargets prepares the wanted stores in dir. Call closeAll when done.
func openTargets(dir string, names []string) (targets []*target, closeAll func(), err error) {
	var closers []func() error
	closeAll = func() {
		for _, c := range slices.Backward(closers) {
			_ = c() // a throw-away server: there is nothing to report
		}
	}
	if slices.Contains(names, "sqlite") {
		targets = append(targets, sqliteTarget(dir, modeFull), sqliteTarget(dir, modeNormal))
	}
	if slices.Contains(names, "postgres") {
		t, c, err := postgresTarget()
		if err != nil {
			return nil, nil, fmt.Errorf("PostgreSQL: %w (leave it out with -stores sqlite,memory)", err)
		}
		targets = append(targets, t)
		closers = append(closers, c)
	}
	if slices.Contains(names, "memory") {
		targets = append(targets, &target{name: "memory", open: func() (store.Store, error) { return memory.Open(), nil }})
	}
	return targets, closeAll, nil
}

// writeSample makes the library write events, one of which a floor copies.
func writeSample(ctx context.Context, s store.Store) error {
	w := durable.Define("sample", func(ctx context.Context, _ int) (int, error) { return steps(ctx, blockSize) })
	err := withEngine(ctx, s, func(ctx context.Context, _ *durable.Engine) error {
		_, err := w.Run(ctx, "sample", 0)
		return err
	}, w)
	return errors.Join(err, s.Close())
}
