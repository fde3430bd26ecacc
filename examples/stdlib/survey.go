package main

import (
	"context"
	"strings"

	"github.com/holdfast-dev/holdfast/durable"
)

// Tree is a part of the standard library: a directory of src with all below it.
type Tree struct {
	Root     string // GOROOT
	Packages []string
}

// Survey measures trees. Journal is how the program checks the library; a
// survey without that interest has no such field.
type Survey struct{ Journal *Journal }

// Measure is the workflow: one step per package, each with an outcome that a
// crash cannot undo.
func (s *Survey) Measure(ctx context.Context, t Tree) ([]Figures, error) {
	var all []Figures
	for _, pkg := range t.Packages {
		f, err := durable.Step(ctx, pkg, func(context.Context) (Figures, error) {
			if err := s.Journal.Write(begun, pkg); err != nil {
				return Figures{}, err
			}
			return measure(t.Root, pkg)
		})
		if err != nil {
			return nil, err
		}
		all = append(all, f)
		// This is outside a step, so a replay writes it again: it repeats that
		// this package is recorded, which is what the journal is checked for.
		//durablevet:ignore io the journal may say twice that a package is recorded
		if err := s.Journal.Write(recorded, pkg); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// trees groups packages by the first element of their path.
func trees(root string, pkgs []string) map[string]Tree {
	byName := map[string]Tree{}
	for _, p := range pkgs {
		name, _, _ := strings.Cut(p, "/")
		t := byName[name]
		t.Root = root
		t.Packages = append(t.Packages, p)
		byName[name] = t
	}
	return byName
}
