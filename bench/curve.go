package main

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A curve is what something costs in stores of several sizes.
type curve struct {
	name string
	unit string // empty: ms
	goal goal
	// on has the goals of stores that have others.
	on map[string]goal
	// most is the greatest size in which it is measured; 0: any.
	most int
	// once: it changes the store, or what it measures, so that it is measured a single time.
	once bool
	// run does it once. How long that takes is the figure, unless it sets another one.
	run func(context.Context, *scaled) error
}

func (c *curve) unitName() string {
	if c.unit == "" {
		return "ms"
	}
	return c.unit
}

// goalOn returns the goal in a store.
func (c *curve) goalOn(store string) goal {
	if g, ok := c.on[store]; ok {
		return g
	}
	return c.goal
}

// A goal is what a curve is held to. One without any has no goal.
type goal struct {
	// most and least are for the figure of the greatest store, in the unit of the curve.
	most, least float64
	// flat: the figure may be at most twice as large in the greatest store as in the smallest,
	// and half a millisecond larger, if that is more.
	flat bool
}

// within is a goal of a curve in milliseconds.
func within(d time.Duration) goal { return goal{most: float64(d) / float64(time.Millisecond)} }

func (g goal) String() string {
	var parts []string
	if g.flat {
		parts = append(parts, "flat")
	}
	if g.least != 0 {
		parts = append(parts, "≥ "+figure(g.least))
	}
	if g.most != 0 {
		parts = append(parts, "≤ "+figure(g.most))
	}
	return strings.Join(parts, ", ")
}

// meets reports whether figures by size, the smallest store first, are within the goal.
func (g goal) meets(figures []float64, unit string) bool {
	first, last := figures[0], figures[len(figures)-1]
	slack := 0.0
	if unit == "ms" {
		slack = 0.5
	}
	if g.flat && last > max(2*first, first+slack) {
		return false
	}
	return last >= g.least && (g.most == 0 || last <= g.most)
}

// scaled is a store of one size, open.
type scaled struct {
	t       *target
	runs    int
	brief   bool // each measurement is as short as can be
	address string
	store.Store
	engine *durable.Engine // serves nothing
	began  time.Time       // when the measurement began
	took   time.Duration   // how long it took, if it says so itself
	figure *float64        // what was measured, if it was not how long it took
	// found has the figures of measurements that give several, by the name of the curve.
	found map[string]float64
}

// window is how long something is watched that is to be watched for d.
func (s *scaled) window(d time.Duration) time.Duration {
	if s.brief {
		return d / 10
	}
	return d
}

// findings makes a curve of each of the figures that one measurement gives, which is made when the
// first of them is asked for.
func findings(measure func(context.Context, *scaled) (map[string]float64, error), list ...curve) []curve {
	for i := range list {
		name := list[i].name
		list[i].once = true
		list[i].run = func(ctx context.Context, s *scaled) error {
			if _, ok := s.found[name]; !ok {
				found, err := measure(ctx, s)
				if err != nil {
					return err
				}
				for of, v := range found {
					s.found[of] = v
				}
			}
			v := s.found[name]
			s.figure = &v
			return nil
		}
	}
	return list
}
