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
	fmt.Printf("from version %d to %d in %d step(s), backup: %v\n", plan.Have, plan.Know, len(plan.Steps), plan.Backup)

	done, err := sc.Migrate(ctx)
	fmt.Println("now at version", done.To, done.Backup, err)

	// Before something risky; to go back, with every program stopped: Restore.
	backup := filepath.Join(dir, "before.db")
	if err := sc.Backup(ctx, backup); err != nil {
		fmt.Println(err)
		return
	}
	kept, err := sc.Restore(ctx, backup)
	fmt.Println(filepath.Ext(kept), err)
	// Output:
	// from version 0 to 1 in 1 step(s), backup: false
	// now at version 1  <nil>
	// .replaced <nil>
}
