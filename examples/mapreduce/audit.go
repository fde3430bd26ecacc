package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// finished returns the files whose outcome is in the store of a program that is gone.
// It reads a copy: the next life must find the store as the kill left it.
func finished(ctx context.Context, dir string, files []string) (map[string]bool, error) {
	aside, err := os.MkdirTemp(dir, "copy-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(aside)
	for _, name := range []string{dbName, dbName + "-wal"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // killed before it was made
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(aside, name), b, 0o600)
		}
		if err != nil {
			return nil, err
		}
	}
	st, err := sqlite.Open(filepath.Join(aside, dbName))
	if err != nil {
		return nil, err
	}
	defer st.Close()
	eng, err := durable.Open(ctx, st, durable.Options{})
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	return outcomes(ctx, eng, files)
}

// outcomes reads the completed items of the Map from the run's history.
func outcomes(ctx context.Context, eng *durable.Engine, files []string) (map[string]bool, error) {
	done := map[string]bool{}
	for ev, err := range eng.History(ctx, runID) {
		switch {
		case errors.Is(err, durable.ErrNotFound):
			return done, nil // killed before the run was started
		case err != nil:
			return nil, err
		case ev.Type != store.ItemCompleted:
			continue
		}
		n := int(ev.Ordinal) - 1 // an item's place is its index
		if n < 0 || n >= len(files) {
			return nil, fmt.Errorf("%s was recorded, and there are %d files", ev.Key, len(files))
		}
		if done[files[n]] {
			return nil, fmt.Errorf("the outcome of %s was recorded twice", files[n])
		}
		done[files[n]] = true
	}
	return done, nil
}
