package main

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A series is the points of one case on one store, or of the floor beside it.
type series struct {
	Label  string
	Class  string // of its colour
	Floor  bool
	points []point
}

type point struct{ x, y, low, high float64 }

// A picture has the series of one case; both axes are logarithmic. It is drawn here because a
// plotting library would put its modules into the go.sum of every user.
type picture struct {
	Name, Unit, Axis string
	Better           string
	Series           []series

	left, right, bottom, top float64 // of the data, rounded to powers of ten
}

// The area of the drawing in the picture.
const (
	plotLeft, plotRight = 70.0, 620.0
	plotTop, plotBottom = 50.0, 350.0
)

//go:embed plot.svg.tmpl
var pictureText string

var pictureTemplate = template.Must(template.New("picture").Parse(pictureText))

// plot writes a picture of each case that is a curve to dir.
func plot(dir string, results []result) error {
	pictures := pictures(results)
	if len(pictures) == 0 {
		return errors.New("none of the results is a point of a curve: measure with -only CROWD,LENGTH,PAYLOAD,SIZE")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, p := range pictures {
		var b strings.Builder
		if err := pictureTemplate.Execute(&b, p); err != nil {
			return err
		}
		name := strings.ToLower(strings.ReplaceAll(p.Name, " ", "-")) + ".svg"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(b.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pictures sorts the points of curves into pictures.
func pictures(results []result) (list []*picture) {
	for i := range results {
		r := &results[i]
		if r.Axis == "" {
			continue
		}
		at := slices.IndexFunc(list, func(p *picture) bool { return p.Name == r.Name })
		if at < 0 {
			p := &picture{Name: r.Name, Unit: r.Unit, Axis: r.Axis, Better: "lower is better"}
			if r.isRate() {
				p.Better = "higher is better"
			}
			list, at = append(list, p), len(list)
		}
		list[at].add(r)
	}
	for _, p := range list {
		p.scale()
	}
	return list
}

// add adds a point, and that of the floor beside it.
func (p *picture) add(r *result) {
	label := r.Store
	if r.Mode == modeFull || r.Mode == modeNormal {
		label += " " + r.Mode
	}
	s := r.medianSpan()
	p.of(label, r.Store, false).put(point{r.X, r.Median, s.low, s.high})
	if r.Floor != nil {
		p.of("by hand, "+label, r.Store, true).put(point{r.X, *r.Floor, *r.Floor, *r.Floor})
	}
}

func (c *series) put(p point) { c.points = append(c.points, p) }

func (p *picture) of(label, class string, floor bool) *series {
	at := slices.IndexFunc(p.Series, func(c series) bool { return c.Label == label })
	if at < 0 {
		p.Series, at = append(p.Series, series{Label: label, Class: class, Floor: floor}), len(p.Series)
	}
	return &p.Series[at]
}

// scale finds the range of both axes.
func (p *picture) scale() {
	p.left, p.bottom = math.Inf(1), math.Inf(1)
	for _, c := range p.Series {
		for _, at := range c.points {
			p.left, p.right = min(p.left, at.x), max(p.right, at.x)
			p.bottom, p.top = min(p.bottom, at.low), max(p.top, at.high)
		}
	}
	p.bottom, p.top = decade(p.bottom, math.Floor), decade(p.top, math.Ceil)
	if p.right == p.left {
		p.right = 10 * p.left // one place: it stands on the left
	}
	if p.top == p.bottom {
		p.top = 10 * p.bottom
	}
}

// decade rounds to a power of ten.
func decade(v float64, round func(float64) float64) float64 {
	return math.Pow(10, round(math.Log10(v)))
}

func (p *picture) atX(x float64) float64 {
	return plotLeft + (plotRight-plotLeft)*math.Log(x/p.left)/math.Log(p.right/p.left)
}

func (p *picture) atY(y float64) float64 {
	return plotBottom - (plotBottom-plotTop)*math.Log(y/p.bottom)/math.Log(p.top/p.bottom)
}

// A tick is a line of the grid with its figure.
type tick struct {
	At    float64
	Label string
}

// Columns are the places that were measured, Rows the powers of ten.
func (p *picture) Columns() (ticks []tick) {
	var xs []float64
	for _, c := range p.Series {
		for _, at := range c.points {
			xs = append(xs, at.x)
		}
	}
	slices.Sort(xs)
	for _, x := range slices.Compact(xs) {
		ticks = append(ticks, tick{p.atX(x), short(x)})
	}
	return ticks
}

// Rows are the powers of ten between least and most.
func (p *picture) Rows() (ticks []tick) {
	for y := p.bottom; y <= p.top*1.001; y *= 10 {
		ticks = append(ticks, tick{p.atY(y), short(y)})
	}
	return ticks
}

// short prints a figure for an axis.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%gM", math.Round(v/1e5)/10)
	case v >= 1e4:
		return fmt.Sprintf("%gk", math.Round(v/1e3))
	}
	return fmt.Sprintf("%g", v)
}

// A drawn series is what the template needs of one.
type drawn struct {
	series
	Path string
	Dots []dot
	Key  float64 // where its name stands
}

type dot struct{ X, Y, Low, High float64 }

// Drawn returns the series where they are to be drawn.
func (p *picture) Drawn() (list []drawn) {
	for i, c := range p.Series {
		d := drawn{series: c, Key: plotTop + 10 + 20*float64(i)}
		var path strings.Builder
		for j, at := range c.points {
			move := "L"
			if j == 0 {
				move = "M"
			}
			fmt.Fprintf(&path, "%s%.1f %.1f", move, p.atX(at.x), p.atY(at.y))
			d.Dots = append(d.Dots, dot{p.atX(at.x), p.atY(at.y), p.atY(at.low), p.atY(at.high)})
		}
		d.Path = path.String()
		list = append(list, d)
	}
	return list
}
