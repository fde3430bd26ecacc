package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/examples/internal/demo"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// Names in the data directory.
const (
	dbName     = "survey.db"
	bookName   = "book"
	reportName = "report"
)

const runID = "go-sources"

// app surveys root and writes the report. It is killed at any moment and started again
// until it completes; it does nothing special about that.
func app(ctx context.Context, dir, root string) error {
	book, err := demo.OpenBook(filepath.Join(dir, bookName))
	if err != nil {
		return err
	}
	defer book.Close()
	survey := durable.Define("survey", (&Survey{Book: book}).Measure)

	st, err := sqlite.Open(filepath.Join(dir, dbName))
	if err != nil {
		return err
	}
	defer st.Close()
	eng, err := durable.Open(ctx, st, durable.Options{
		Workflows: []durable.Definition{survey},
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
	report, err := survey.Run(ctx, runID, root)
	if err != nil {
		return fmt.Errorf("run %s: %w", runID, err)
	}
	return os.WriteFile(filepath.Join(dir, reportName), []byte(report), 0o600)
}
