package main

import (
	"context"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/examples/internal/demo"
)

// atOnce is how many files are read at a time.
const atOnce = 8

// Survey measures a Go source tree. Book is how the program checks the library;
// a survey without that interest has no such field.
type Survey struct{ Book *demo.Book }

// Measure is the workflow: a map over every file, and a reduction. root is a
// GOROOT; the result is the report.
func (s *Survey) Measure(ctx context.Context, root string) (string, error) {
	// A directory may change, so what was found is recorded.
	files, err := durable.Step(ctx, "list", func(context.Context) ([]string, error) {
		return sources(root)
	})
	if err != nil {
		return "", err
	}
	figures, err := durable.Map(ctx, "files", files, durable.MapOptions{Concurrency: atOnce},
		func(_ context.Context, file string) (Figures, error) {
			if err := s.Book.Write(begun, file); err != nil {
				return Figures{}, err
			}
			return measure(root, file)
		})
	if err != nil {
		return "", err
	}
	return reduce(figures), nil // pure, so it needs no step
}

// plain does the same without the library: the report must equal its result.
func plain(root string, files []string) (string, error) {
	var all []Figures
	for _, file := range files {
		f, err := measure(root, file)
		if err != nil {
			return "", err
		}
		all = append(all, f)
	}
	return reduce(all), nil
}
