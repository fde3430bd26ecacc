package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// A scaleResult is a curve as it was measured. It has no figure for the sizes in which it is not
// measured, which are the last.
type scaleResult struct {
	Curve   string    `json:"curve"`
	Store   string    `json:"store"`
	Unit    string    `json:"unit"`
	Runs    []int     `json:"runs"`
	Figures []float64 `json:"figures"`
	Goal    string    `json:"goal,omitempty"`
	Met     bool      `json:"met"`
}

// scaleTries is how often a curve is measured that does not take long.
const scaleTries = 11

// scale measures the curves whose names have one of the words, all if there is none.
func scale(ctx context.Context, out io.Writer, stores []string, sizes []int, tries int, words []string, asJSON bool) error {
	began := time.Now()
	dir, err := os.MkdirTemp("", "holdfast-scale-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	targets, closeAll, err := openTargets(dir, stores)
	if err != nil {
		return err
	}
	defer closeAll()
	var results []scaleResult
	for _, t := range targets {
		if !t.isDurable() {
			continue
		}
		byCurve := map[string][]float64{}
		for _, runs := range sizes {
			fmt.Fprintf(os.Stderr, "%s with %d runs ...\n", t.name, runs)
			if err := scaleOf(ctx, t, runs, tries, words, byCurve); err != nil {
				return fmt.Errorf("%s with %d runs: %w", t.name, runs, err)
			}
			fmt.Fprintf(os.Stderr, "%s with %d runs: %s since the beginning\n", t.name, runs, time.Since(began).Round(time.Second))
		}
		for _, c := range curves {
			if figures := byCurve[c.name]; len(figures) > 0 {
				g := c.goalOn(t.name)
				results = append(results, scaleResult{c.name, t.name, c.unitName(), sizes[:len(figures)], figures, g.String(), g.meets(figures, c.unitName())})
			}
		}
	}
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(map[string]any{"curves": results, "seconds": time.Since(began).Seconds()})
	}
	return printScale(out, sizes, results)
}

// scaleOf adds the figures of each curve in a store of one size, which is removed again.
func scaleOf(ctx context.Context, t *target, runs, tries int, words []string, byCurve map[string][]float64) (err error) {
	began := time.Now()
	address, err := newScale(ctx, t, runs)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "  filled in %s\n", time.Since(began).Round(100*time.Millisecond))
	return errors.Join(scaleAt(ctx, t, address, runs, tries, words, byCurve), t.remove(address))
}

// scaleAt is scaleOf for a store that is there.
func scaleAt(ctx context.Context, t *target, address string, runs, tries int, words []string, byCurve map[string][]float64) (err error) {
	st, err := connectAsDefault(t, address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	eng, err := durable.Open(ctx, st, durable.Options{Grace: -1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	for _, id := range []string{scaleExecutor, "bench"} {
		if _, err := st.Beat(ctx, scaleBeat(id)); err != nil {
			return err
		}
	}
	s := &scaled{t: t, runs: runs, brief: tries < scaleTries, address: address, Store: st, engine: eng, found: map[string]float64{}}
	for _, c := range curves {
		if len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(c.name, w) }) {
			continue
		}
		if c.most != 0 && runs > c.most {
			continue
		}
		began := time.Now()
		v, err := s.measure(ctx, &c, tries)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Fprintf(os.Stderr, "  %-36s %s %s (in %s)\n", c.name, figure(v), c.unitName(), time.Since(began).Round(100*time.Millisecond))
		byCurve[c.name] = append(byCurve[c.name], v)
	}
	return nil
}

// measure returns the median of some tries, after one that does not count, or the first
// that takes longer than a second.
func (s *scaled) measure(ctx context.Context, c *curve, tries int) (float64, error) {
	var all []float64
	for len(all) <= tries {
		s.began, s.took, s.figure = time.Now(), 0, nil
		if err := c.run(ctx, s); err != nil {
			return 0, err
		}
		if s.figure != nil {
			return *s.figure, nil
		}
		if s.took == 0 {
			s.took = time.Since(s.began)
		}
		all = append(all, milliseconds(s.took))
		if c.once || s.took > time.Second {
			return all[len(all)-1], nil
		}
	}
	return median(all[1:]), nil
}

func printScale(out io.Writer, sizes []int, results []scaleResult) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "curve\tstore\tunit\t")
	for _, n := range sizes {
		fmt.Fprintf(w, "at %d\t", n)
	}
	fmt.Fprintln(w, "goal\t\t")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%s\t%s\t", r.Curve, r.Store, r.Unit)
		for i := range sizes {
			if i >= len(r.Figures) {
				fmt.Fprint(w, "-\t")
				continue
			}
			fmt.Fprintf(w, "%s\t", figure(r.Figures[i]))
		}
		met := ""
		switch {
		case r.Goal == "":
		case r.Met:
			met = "ok"
		default:
			met = "over"
		}
		fmt.Fprintf(w, "%s\t%s\t\n", r.Goal, met)
	}
	return w.Flush()
}
