package host

import (
	"os"
	"regexp"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheReleaseIsThatOfTheModuleOrElseThatOfTheSources(t *testing.T) {
	ours := func(version string) debug.Module { return debug.Module{Path: module, Version: version} }
	for name, c := range map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"go install at a tag":             {debug.BuildInfo{Main: ours("v0.9.1")}, "0.9.1"},
		"go install after a tag":          {debug.BuildInfo{Main: ours("v0.9.2-0.20270101000000-abcdefabcdef")}, "0.9.2-0.20270101000000-abcdefabcdef"},
		"go install without any tag":      {debug.BuildInfo{Main: ours("v0.0.0-20270101000000-abcdefabcdef")}, release + "-dev (abcdefabcdef)"},
		"go build of changed sources":     {debug.BuildInfo{Main: ours("v0.0.0-20270101000000-abcdefabcdef+dirty")}, release + "-dev (abcdefabcdef+dirty)"},
		"go build in the repository":      {debug.BuildInfo{Main: ours("(devel)")}, release + "-dev"},
		"a test of the repository":        {debug.BuildInfo{Main: ours("")}, release + "-dev"},
		"a program that requires a tag":   {debug.BuildInfo{Main: debug.Module{Path: "shop", Version: "v7.0.0"}, Deps: []*debug.Module{{Path: "a", Version: "v3.0.0"}, {Path: module, Version: "v0.9.1"}}}, "0.9.1"},
		"a program that replaces it":      {debug.BuildInfo{Deps: []*debug.Module{{Path: module, Version: "v0.0.0", Replace: &debug.Module{Path: "../holdfast"}}}}, release + "-dev"},
		"a program that replaces its tag": {debug.BuildInfo{Deps: []*debug.Module{{Path: module, Version: "v0.9.1", Replace: &debug.Module{Path: "fork", Version: "v4.0.0"}}}}, release + "-dev"},
		"a program without modules":       {debug.BuildInfo{Main: debug.Module{Path: "shop"}}, release + "-dev"},
	} {
		require.Equal(t, c.want, releaseIn(&c.info), name)
	}
}

// The number is raised in one place, with the text that says what it brings.
func TestTheReleaseIsTheNewestOfTheChangelog(t *testing.T) {
	b, err := os.ReadFile("../../CHANGELOG.md")
	require.NoError(t, err)
	newest := regexp.MustCompile(`(?m)^## ([0-9][^\s,]*)`).FindSubmatch(b)
	require.NotNil(t, newest)
	require.Equal(t, string(newest[1]), release)
}
