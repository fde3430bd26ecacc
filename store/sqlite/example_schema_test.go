//go:build cgo

package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/store/sqlite"
)

func ExampleOpenSchema() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "app.db")

	sc, err := sqlite.OpenSchema(path, sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := sc.Plan(ctx) // the dry run
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("from version %d, backup: %v, beginning with step %d, %s\n", plan.Have, plan.Backup, plan.Steps[0].Version, plan.Steps[0].Name)

	done, err := sc.Migrate(ctx)
	fmt.Println("up to date:", done.To == plan.Know, err)

	// Before something risky; to go back, with every program stopped: Restore.
	backup := filepath.Join(dir, "before.db")
	if err := sc.Backup(ctx, backup); err != nil {
		fmt.Println(err)
		return
	}
	kept, err := sc.Restore(ctx, backup)
	fmt.Println(filepath.Ext(kept), err)
	// Output:
	// from version 0, backup: false, beginning with step 1, first
	// up to date: true <nil>
	// .replaced <nil>
}
