package arch_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/test/arch/shape"
)

// The shape of the large packages may get better, not worse: each figure is the
// most that is allowed, and is lowered when the code has come below it. `make shape`
// prints the figures of today. Lines, and references upward where there are many, are rounded up, so that a repair has room.
var (
	packageCeilings = map[string]struct{ files, lines, upward, longestFile, longestFunc int }{
		"durable":          {86, 17700, 138, 530, 80},
		"operate":          {29, 6170, 3, 545, 70},
		"internal/claims":  {23, 3230, 6, 330, 47},
		"internal/commit":  {16, 2250, 7, 380, 47},
		"internal/history": {31, 5400, 10, 470, 80},
		"internal/payload": {12, 2580, 10, 530, 56},
		"dashboard":        {9, 1100, 3, 240, 66},
		"cli":              {36, 6490, 30, 390, 69},
		"store":            {23, 3010, 4, 353, 55},
		"store/memory":     {14, 1500, 5, 199, 42},
		"store/sqlite":     {42, 7250, 25, 412, 45},
		"store/postgres":   {45, 9260, 36, 494, 56},

		"cli/internal/show":   {14, 1000, 0, 190, 66},
		"cli/internal/target": {11, 2600, 10, 540, 54},

		"dashboard/internal/view":   {15, 2350, 1, 330, 50},
		"dashboard/internal/web":    {5, 450, 0, 200, 30},
		"dashboard/internal/read":   {9, 1000, 3, 260, 57},
		"dashboard/internal/stream": {7, 1250, 5, 460, 55},
		"dashboard/internal/act":    {10, 1370, 4, 300, 60},
		"dashboard/internal/api":    {8, 650, 0, 150, 55},
		"dashboard/internal/pages":  {26, 3950, 3, 330, 66},
	}
	typeCeilings = map[string]struct{ fields, methods, files int }{
		"durable.Engine":         {21, 42, 9},
		"durable.run":            {38, 42, 6},
		"durable.scope":          {26, 32, 6},
		"operate.Operator":       {4, 90, 19},
		"internal/history.Past":  {37, 42, 6},
		"internal/history.Audit": {28, 49, 5},
		"cli.invocation":         {9, 56, 7},
		"store/sqlite.Store":     {24, 86, 24},
		"store/postgres.Store":   {29, 120, 24},
	}
)

func TestTheShapeOfTheCodeDoesNotGetWorse(t *testing.T) {
	var patterns []string
	for path := range packageCeilings {
		patterns = append(patterns, "./"+path)
	}
	all, err := shape.Measure("../..", patterns...)
	require.NoError(t, err)
	within := func(what string, now, ceiling int) {
		if now > ceiling {
			t.Errorf("%s: %d, at most %d are allowed", what, now, ceiling)
		}
	}
	types := 0
	for _, p := range all {
		_, path, _ := strings.Cut(p.Path, "/holdfast/")
		c, ok := packageCeilings[path]
		require.True(t, ok, path)
		within(path+": files", p.Files, c.files)
		if path == "durable" {
			within("durable: exported types", p.Exported.Types, 72)
		}
		within(path+": lines", p.Lines, c.lines)
		within(path+": references upward", p.Arrows.Upward, c.upward)
		within(path+": lines of "+p.Longest.Name, p.Longest.Lines, c.longestFile)
		within(path+": lines of "+p.Funcs[0].Name, p.Funcs[0].Lines, c.longestFunc)
		for _, typ := range p.Types {
			name := path + "." + typ.Name
			c, ok := typeCeilings[name]
			if !ok {
				within(name+": files with its methods", typ.Files, 11)
				continue
			}
			types++
			within(name+": fields", typ.Fields, c.fields)
			within(name+": methods", typ.Methods, c.methods)
			within(name+": files with its methods", typ.Files, c.files)
		}
	}
	require.Len(t, all, len(packageCeilings))
	require.Equal(t, len(typeCeilings), types, "a type of the list is gone: take it out")
}
