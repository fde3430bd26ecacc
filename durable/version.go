package durable

import (
	"context"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
)

// Release returns the release of Holdfast that this program is built with, such as 0.1.0.
// Between two releases it is the version of the module as Go stamps it, and before the first
// one 0.1.0-dev with the revision, if that is known: "0.1.0-dev (1f2e3d4c5b6a)".
func Release() string { return host.Release() }

// RunVersion returns the version of the code that executes the run that ctx belongs
// to: in its function, in branches, items, step bodies and compensations. On every
// replay it is the version that the run was started with (unless recovery has fallen
// back, see Recover), and never another one that is registered beside it. It is
// empty outside a run.
func RunVersion(ctx context.Context) string {
	if r := runOf(ctx); r != nil {
		return r.def.version
	}
	return ""
}

// versions returns the versions of a workflow that are registered here, sorted.
func (ds *definitions) versions(workflow string) []string {
	s := ds.byName[workflow]
	if s == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.versions))
}

// notServed says why a run cannot be executed here.
func (ds *definitions) notServed(row *store.Run) string {
	return stuck.NotServed(row, ds.versions(row.Workflow), slices.Sorted(maps.Keys(ds.byName)))
}

// pins returns the version to which a claim pins the run; empty if it is pinned
// already or stays without one. The row follows before anything is executed; see
// pin.
func (ds *definitions) pins(row *store.Run) string {
	if row.Version != "" || row.InitialVersion != "" {
		return "" // if the row lost its version, the history still has it
	}
	if def := ds.find(row.Workflow, ""); def != nil {
		return def.version
	}
	return ""
}

// codeOf returns the code for a claimed run. If the row names no version, that is
// the version the run was started with, if that is known and here (E1); pin then
// records it.
func (ds *definitions) codeOf(row *store.Run) *definition {
	if row.Version != "" || row.InitialVersion == "" {
		return ds.find(row.Workflow, row.Version)
	}
	if def := ds.find(row.Workflow, row.InitialVersion); def != nil {
		return def
	}
	return ds.find(row.Workflow, "")
}
