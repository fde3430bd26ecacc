package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// written puts results into a file as -json does.
func written(t *testing.T, results ...result) string {
	path := filepath.Join(t.TempDir(), "results.json")
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, errors.Join(printJSON(f, results), f.Close()))
	return path
}

func paired(name string, floor, ours float64) result {
	var list []pair
	for i := range 20 {
		list = append(list, pair{floor, ours + float64(i%3)})
	}
	r := pairedResult(name, "us/step", false, list)
	r.Store = "sqlite"
	return r
}

func of(name, unit string, values ...float64) result {
	r := plainResult(name, unit, values)
	r.Store = "sqlite"
	return r
}

func TestCompareNamesTheCasesThatHaveMoved(t *testing.T) {
	old := written(t,
		paired("SEQ", 100, 120), paired("PAR", 100, 120), paired("MAP", 100, 120),
		of("START p50", "us/run", 600, 610, 620), of("QUEUE", "runs/s", 4000, 4100), of("IDLE", "statements/s", 0.6), of("GONE", "ms", 1),
		of("START p99", "us/run", 1000, 1100, 1200))
	now := written(t,
		paired("SEQ", 200, 240), // slower, and so is the floor
		paired("PAR", 100, 90), paired("MAP", 100, 180),
		of("START p50", "us/run", 500, 510, 520), of("QUEUE", "runs/s", 3000, 3100), of("IDLE", "statements/s", 0.2), of("NEW", "ms", 1),
		of("START p99", "us/run", 1150, 1250, 1300))
	var out bytes.Buffer
	require.NoError(t, command(t.Context(), &out, []string{"-from", now, "-compare", old}))
	var words []string
	for line := range strings.Lines(out.String()) {
		f := strings.Fields(line)
		words = append(words, f[0]+" "+f[1])
	}
	require.Equal(t, []string{"worse MAP", "better PAR", "worse QUEUE", "better START", "better IDLE", "5 of"}, words, out.String())
	require.Contains(t, out.String(), "5 of 7 cases have moved beyond their intervals.")
	require.Contains(t, out.String(), "610 (600 to 620)")

	require.ErrorContains(t, command(t.Context(), io.Discard, []string{"-from", now, "-compare", written(t, of("GONE", "ms", 1))}), "no case in common")
}

// Of many rounds it is the interval of the median that counts, not the extremes.
func TestCompareUsesTheIntervalOfTheMedianIfThereIsOne(t *testing.T) {
	before, after := []float64{1, 500}, []float64{2, 501}
	for range 20 {
		before, after = append(before, 100), append(after, 110)
	}
	moved, compared := moves([]result{of("START p50", "us/run", before...)}, []result{of("START p50", "us/run", after...)})
	require.Equal(t, 1, compared)
	require.Len(t, moved, 1)
	require.False(t, moved[0].better)
}

func TestAFileThatIsNoMeasurementIsRefusedBeforeAnyWork(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.json")
	require.NoError(t, os.WriteFile(path, []byte("{}"), 0o600))
	require.ErrorContains(t, command(t.Context(), io.Discard, []string{"-compare", path}), "has no cases")
	require.ErrorIs(t, command(t.Context(), io.Discard, []string{"-compare", path + "x"}), os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("CASE"), 0o600))
	require.ErrorContains(t, command(t.Context(), io.Discard, []string{"-from", path}), "is not what bench -json prints")
}

func TestCurvesAreDrawnWithTheirFloor(t *testing.T) {
	var results []result
	for _, x := range []float64{1, 10, 100} {
		rate := pairedResult("CROWD", "steps/s", true, []pair{{1000, 2000 * x}}).at(axisCrowd, x)
		rate.Store, rate.Mode = "sqlite", modeFull
		results = append(results, rate)
	}
	dir := filepath.Join(t.TempDir(), "plots")
	from := written(t, append(results, paired("SEQ", 1, 2))...)
	require.NoError(t, command(t.Context(), io.Discard, []string{"-from", from, "-plot", dir}))
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "crowd.svg")}, files)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	var svg struct {
		Paths []struct {
			Class string `xml:"class,attr"`
			D     string `xml:"d,attr"`
		} `xml:"path"`
		Texts []string `xml:"text"`
	}
	require.NoError(t, xml.Unmarshal(text, &svg))
	require.Len(t, svg.Paths, 2)
	require.Equal(t, "curve sqlite", svg.Paths[0].Class)
	// A straight line in logarithmic axes, from 2,000 to 200,000 between 1,000 and 1,000,000.
	require.Equal(t, "M70.0 319.9L345.0 219.9L620.0 119.9", svg.Paths[0].D)
	require.Equal(t, "curve sqlite floor", svg.Paths[1].Class)
	require.Equal(t, "M70.0 350.0L345.0 350.0L620.0 350.0", svg.Paths[1].D)
	for _, label := range []string{"CROWD: steps/s, higher is better", "runs at once", "sqlite FULL", "by hand, sqlite FULL", "1M", "100"} {
		require.Contains(t, svg.Texts, label)
	}

	require.ErrorContains(t, command(t.Context(), io.Discard, []string{"-from", written(t, paired("SEQ", 1, 2)), "-plot", dir}), "none of the results is a point of a curve")
}
