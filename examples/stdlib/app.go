package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// Names in the data directory.
const (
	dbName      = "survey.db"
	journalName = "journal"
	reportName  = "report"
)

// app measures the standard library durably and writes the report. It is killed at any
// moment and started again until it completes; it does nothing special about that.
func app(ctx context.Context, dir, root string) (err error) {
	journal, err := openJournal(filepath.Join(dir, journalName))
	if err != nil {
		return err
	}
	defer journal.Close()
	survey := &Survey{Journal: journal}
	workflow := durable.Define("measure", survey.Measure)

	st, err := sqlite.Open(filepath.Join(dir, dbName))
	if err != nil {
		return err
	}
	defer st.Close()
	eng, err := durable.Open(ctx, st, durable.Options{
		Workflows: []durable.Definition{workflow},
		// A run is quarantined when its process dies repeatedly before it records
		// anything. Here that says nothing about the run: the kills come from outside,
		// and fast.
		QuarantineAfter: math.MaxInt32,
	})
	if err != nil {
		return err
	}
	defer eng.Close()
	durable.SetDefault(eng)
	if _, err := durable.Recover(ctx); err != nil {
		return err
	}

	pkgs, err := packages(root)
	if err != nil {
		return err
	}
	runs := map[string]*durable.Run[[]Figures]{}
	for name, tree := range trees(root, pkgs) {
		if runs[name], err = workflow.Start(ctx, name, tree); err != nil {
			return err
		}
	}
	var all []Figures
	for name, run := range runs {
		figures, err := run.Wait(ctx)
		if err != nil {
			return fmt.Errorf("tree %s: %w", name, err)
		}
		all = append(all, figures...)
	}
	return os.WriteFile(filepath.Join(dir, reportName), []byte(render(all)), 0o600)
}

// plain computes the report without the library: both must be equal.
func plain(root string) (string, error) {
	pkgs, err := packages(root)
	if err != nil {
		return "", err
	}
	var all []Figures
	for _, p := range pkgs {
		f, err := measure(root, p)
		if err != nil {
			return "", err
		}
		all = append(all, f)
	}
	return render(all), nil
}
