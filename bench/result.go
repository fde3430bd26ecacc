package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// A result is the outcome of one case on one store. For times (unit us/..., ns/...) and
// what is spent lower is better, for rates (see isRate) higher; a higher ratio against the
// floor is always better.
type result struct {
	Name  string `json:"name"`
	Store string `json:"store"`
	Mode  string `json:"mode,omitempty"`
	// A point of a curve: its place on the axis.
	Axis   string  `json:"axis,omitempty"`
	X      float64 `json:"x,omitempty"`
	Unit   string  `json:"unit"`
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
	// The bootstrap interval of the median of enough rounds (see enough), else nil.
	MedianLow  *float64 `json:"median_low,omitempty"`
	MedianHigh *float64 `json:"median_high,omitempty"`
	// For cases with a floor: its median, the median of the pairs' ratios, and the
	// bootstrap interval of that median.
	Floor  *float64 `json:"floor,omitempty"`
	Ratio  *float64 `json:"ratio,omitempty"`
	Low    *float64 `json:"low,omitempty"`
	High   *float64 `json:"high,omitempty"`
	Rounds int      `json:"rounds"`
	// Goal is the most that the median is to be, in the unit; 0: there is none.
	Goal float64 `json:"goal,omitempty"`
}

// plainResult is the result of a case without a floor.
func plainResult(name, unit string, values []float64) result {
	r := result{
		Name: name, Unit: unit, Rounds: len(values),
		Min: slices.Min(values), Median: median(values), Max: slices.Max(values),
	}
	if len(values) >= enough {
		low, high := bootstrap(values)
		r.MedianLow, r.MedianHigh = &low, &high
	}
	return r
}

// isRate reports that more is better.
func (r *result) isRate() bool {
	return strings.HasSuffix(r.Unit, "/s") && r.Unit != "statements/s" && r.Unit != "ms/s"
}

// enough rounds give a bootstrap interval that says more than least and most do.
const enough = 9

// at makes r the point of a curve.
func (r result) at(axis string, x float64) result {
	r.Axis, r.X = axis, x
	return r
}

// pairedResult is the result of a case with a floor. rate says that the values
// are per second.
func pairedResult(name, unit string, rate bool, measured []pair) result {
	var floors, ours, ratios []float64
	for _, p := range measured {
		floors = append(floors, p.floor)
		ours = append(ours, p.ours)
		ratios = append(ratios, p.ratio(rate))
	}
	r := plainResult(name, unit, ours)
	floor, ratio := median(floors), median(ratios)
	low, high := bootstrap(ratios)
	r.Floor, r.Ratio, r.Low, r.High = &floor, &ratio, &low, &high
	return r
}

// inFloors says how many operations of the floor ours took, of the same pairs: a time against a
// time, so that less is better.
func inFloors(name, unit string, measured []pair) result {
	var times []float64
	for _, p := range measured {
		times = append(times, p.ours/p.floor)
	}
	return plainResult(name, unit, times)
}

// within gives r a goal.
func (r result) within(goal float64) result {
	r.Goal = goal
	return r
}

func printJSON(w io.Writer, results []result) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Cases []result `json:"cases"`
	}{results})
}

func printTable(w io.Writer, results []result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "case\tstore\tmode\tmin\tmedian\tmax\tunit\tfloor\tratio\t95% interval\trounds\tgoal\t")
	for _, r := range results {
		floor, ratio, interval, goal := "", "", "", ""
		if r.Ratio != nil {
			floor = figure(*r.Floor)
			ratio = figure(*r.Ratio)
			interval = figure(*r.Low) + " to " + figure(*r.High)
		}
		if r.Goal != 0 {
			goal = "≤ " + figure(r.Goal)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t\n", r.title(), r.Store, r.Mode,
			figure(r.Min), figure(r.Median), figure(r.Max), r.Unit, floor, ratio, interval, r.Rounds, goal)
	}
	return t.Flush()
}

// title names a result, and of the point of a curve the place.
func (r *result) title() string {
	if r.Axis == "" {
		return r.Name
	}
	return fmt.Sprintf("%s, %.0f %s", r.Name, r.X, r.Axis)
}

// readJSON reads what printJSON has written.
func readJSON(path string) ([]result, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all struct {
		Cases []result `json:"cases"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s is not what bench -json prints: %w", path, err)
	}
	if len(all.Cases) == 0 {
		return nil, fmt.Errorf("%s has no cases", path)
	}
	return all.Cases, nil
}

// figure prints three significant digits without an exponent.
func figure(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
