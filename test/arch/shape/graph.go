package shape

import (
	"maps"
	"slices"
)

// graph has the files of a package and which of them uses which.
type graph map[string]map[string]bool

func (g graph) add(file string) {
	if g[file] == nil {
		g[file] = map[string]bool{}
	}
}

func (g graph) arrow(from, to string) {
	g.add(from)
	g.add(to)
	g[from][to] = true
}

func (g graph) size() (n int) {
	for _, to := range g {
		n += len(to)
	}
	return n
}

// order puts users before what they use, as far as the arrows let it: sinks are taken
// off at the end and sources at the front, and where there is neither, the file that
// uses most and is used least goes to the front.
func (g graph) order() []string {
	left := graph{}
	in := map[string]int{}
	for from, tos := range g {
		left.add(from)
		for to := range tos {
			left.arrow(from, to)
			in[to]++
		}
	}
	remove := func(file string) {
		for to := range left[file] {
			in[to]--
		}
		delete(left, file)
		for _, tos := range left {
			delete(tos, file)
		}
	}
	var front, back []string
	for len(left) > 0 {
		names := slices.Sorted(maps.Keys(left))
		best, found := names[0], false
		for _, f := range names {
			if len(left[f]) == 0 {
				back, found = append(back, f), true
				remove(f)
				break
			}
			if in[f] == 0 {
				front, found = append(front, f), true
				remove(f)
				break
			}
			if len(left[f])-in[f] > len(left[best])-in[best] {
				best = f
			}
		}
		if !found {
			front = append(front, best)
			remove(best)
		}
	}
	slices.Reverse(back)
	return append(front, back...)
}

// upward counts the arrows against an order.
func (g graph) upward(order []string) (n int) {
	place := map[string]int{}
	for i, f := range order {
		place[f] = i
	}
	for from, tos := range g {
		for to := range tos {
			if place[to] < place[from] {
				n++
			}
		}
	}
	return n
}
