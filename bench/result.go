package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// A result is the outcome of one case on one store. For times (unit us/..., ns/...) and
// counts lower is better, for rates (unit .../s) higher; a higher ratio against the
// floor is always better.
type result struct {
	Name   string  `json:"name"`
	Store  string  `json:"store"`
	Mode   string  `json:"mode,omitempty"`
	Unit   string  `json:"unit"`
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
	// For cases with a floor: its median, the median of the pairs' ratios, and the
	// bootstrap interval of that median.
	Floor  *float64 `json:"floor,omitempty"`
	Ratio  *float64 `json:"ratio,omitempty"`
	Low    *float64 `json:"low,omitempty"`
	High   *float64 `json:"high,omitempty"`
	Rounds int      `json:"rounds"`
}

// plainResult is the result of a case without a floor.
func plainResult(name, unit string, values []float64) result {
	return result{
		Name: name, Unit: unit, Rounds: len(values),
		Min: slices.Min(values), Median: median(values), Max: slices.Max(values),
	}
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

func printJSON(w io.Writer, results []result) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Cases []result `json:"cases"`
	}{results})
}

func printTable(w io.Writer, results []result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "case\tstore\tmode\tmin\tmedian\tmax\tunit\tfloor\tratio\t95% interval\trounds\t")
	for _, r := range results {
		floor, ratio, interval := "", "", ""
		if r.Ratio != nil {
			floor = figure(*r.Floor)
			ratio = figure(*r.Ratio)
			interval = figure(*r.Low) + " to " + figure(*r.High)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t\n", r.Name, r.Store, r.Mode,
			figure(r.Min), figure(r.Median), figure(r.Max), r.Unit, floor, ratio, interval, r.Rounds)
	}
	return t.Flush()
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
