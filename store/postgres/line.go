package postgres

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/gate"
)

// survey is what a claim has seen: runs that it may take, and how full their queues are.
type survey struct {
	now    store.Time
	owners driverValue // whose runs may be claimed
	free   []candidate // what needs no place, in order
	fixed  []candidate // instead of all else: what was asked for, in order
	lines  map[string]*line
}

func newSurvey() *survey { return &survey{lines: map[string]*line{}} }

// line is the runs in line for a place in a queue.
type line struct {
	store.Queue
	known bool   // the queue has a row
	turn  string // the partition that had the last turn
	begun int64  // how many claims its row has counted

	now  store.Time
	room int
	use  gate.Use

	lanes []lane
	timed []candidate

	order []*part // the next partitions, in the order of their turns
	cut   bool    // there are more
	full  bool    // partitions were passed over because they are full
}

// lane is runs of a line that do not wait for a time.
type lane struct {
	status            store.Status
	workflow, version string
}

// part is a partition of a line.
type part struct {
	name string
	runs [2][]candidate // those that would begin, and those that would resume
	cut  [2]bool        // there are more
}

// limited reports whether claims from the queue have to be one at a time.
func (l *line) limited() bool {
	return l.Max > 0 || l.MaxPerPartition > 0 || l.Rate > 0 || l.Paused
}

// gate returns the gate of the queue for a new plan.
func (l *line) gate() *gate.Gate {
	u := l.use
	u.Parts = maps.Clone(u.Parts)
	return gate.New(l.Queue, l.room, l.now, u)
}

// empty reports that nothing is in line.
func (l *line) empty() bool { return len(l.lanes) == 0 && len(l.timed) == 0 }

// plan is which runs a claim wants to take, in order.
type plan struct {
	list    []candidate
	partial bool                  // the survey shows too little to say what comes next
	left    map[string]store.Time // queues with runs left, and when their rate lets one begin
}

// plan plans to take that many runs; it does not change s.
func (s *survey) plan(most int) (p plan) {
	if s.fixed != nil {
		return s.planFixed(most)
	}
	var all []*walk
	for _, name := range slices.Sorted(maps.Keys(s.lines)) {
		if l := s.lines[name]; !l.empty() {
			all = append(all, newWalk(l))
		}
	}
	free := s.free
	for len(p.list) < most {
		var best *candidate
		var of *walk
		if len(free) > 0 {
			best = &free[0]
		}
		for _, w := range all {
			k := w.peek()
			if w.dry {
				p.partial = true
				if len(p.list) > 0 {
					return p
				}
			}
			if k != nil && (best == nil || before(k, best)) {
				best, of = k, w
			}
		}
		if best == nil {
			break
		}
		p.list = append(p.list, *best)
		if of != nil {
			of.enter()
		} else {
			free = free[1:]
		}
	}
	p.left = map[string]store.Time{}
	for _, w := range all {
		p.partial = p.partial || len(w.line.timed) >= maxTimed
		if w.left() {
			p.left[w.line.Name] = w.gate.NextAt()
		}
	}
	return p
}

// planFixed plans to take what was asked for, as far as there are places.
func (s *survey) planFixed(most int) (p plan) {
	gates := map[string]*gate.Gate{}
	for _, k := range s.fixed {
		if len(p.list) == most {
			break
		}
		if k.place {
			g := gates[k.queue]
			if g == nil {
				g = s.lines[k.queue].gate()
				gates[k.queue] = g
			}
			if !g.Fits(k.partition, k.begins()) {
				continue
			}
			g.Enter(k.partition, k.begins())
		}
		p.list = append(p.list, k)
	}
	return p
}

// those returns a survey of these candidates alone.
func (s *survey) those(list []candidate) *survey {
	return &survey{now: s.now, fixed: list, lines: s.lines}
}

// only returns a survey of one candidate alone.
func (s *survey) only(k candidate) *survey { return s.those([]candidate{k}) }

// before reports whether a comes before b in line (S34).
func before(a, b *candidate) bool { return compare(a, b) < 0 }

func compare(a, b *candidate) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.no, b.no))
}

func (c *candidate) kind() int {
	if c.begins() {
		return 0
	}
	return 1
}

// walk is a plan's way along a line.
type walk struct {
	line  *line
	gate  *gate.Gate
	pos   int // in the order, of the partition whose turn is next
	at    map[*part]*[2]int
	known bool // next is up to date
	next  *candidate
	of    int // its partition, in the order
	dry   bool
}

func newWalk(l *line) *walk {
	w := &walk{line: l, gate: l.gate(), at: map[*part]*[2]int{}}
	for _, p := range l.order {
		w.at[p] = new([2]int)
	}
	return w
}

// peek returns the run that gets the next place; nil if none can be let in, or, with
// dry set, if the survey does not show it.
func (w *walk) peek() *candidate {
	if !w.known {
		w.next, w.known = w.find(), true
	}
	return w.next
}

func (w *walk) find() *candidate {
	if w.gate.Closed() {
		return nil
	}
	for i := range w.line.order {
		pos := w.pos + i
		if pos >= len(w.line.order) && w.line.cut {
			break
		}
		pos %= len(w.line.order)
		p := w.line.order[pos]
		var best *candidate
		for kind := range p.runs {
			if !w.gate.Fits(p.name, kind == 0) {
				continue
			}
			at := w.at[p][kind]
			if at == len(p.runs[kind]) {
				if p.cut[kind] {
					w.dry = true
					return nil
				}
				continue
			}
			if k := &p.runs[kind][at]; best == nil || before(k, best) {
				best = k
			}
		}
		if best != nil {
			w.of = pos
			return best
		}
	}
	w.dry = w.line.cut
	return nil
}

// enter gives the run found by peek its place.
func (w *walk) enter() {
	p := w.line.order[w.of]
	w.at[p][w.next.kind()]++
	w.gate.Enter(p.name, w.next.begins())
	w.pos, w.known = w.of+1, false
}

// left reports whether runs in line were not let in.
func (w *walk) left() bool {
	if w.line.full || w.line.cut || w.line.order == nil {
		return true
	}
	for _, p := range w.line.order {
		for kind := range p.runs {
			if p.cut[kind] || w.at[p][kind] < len(p.runs[kind]) {
				return true
			}
		}
	}
	return false
}

// maxTimed is how many runs of a lane whose time has come a claim looks at.
const maxTimed = 256

// survey looks for what the claim may take: enough for want runs.
func (c *claiming) survey(w *wire, want int) (*survey, error) {
	all, err := c.store.census(w)
	if err != nil {
		return nil, err
	}
	if !all.isLive(c.claim.Executor) {
		return nil, fmt.Errorf("postgres: executor %q must beat before it claims: %w", c.claim.Executor, store.ErrNotFound)
	}
	s := newSurvey()
	s.now, s.owners = all.now, all.free()
	workflows, versions := pairs(c.claim.Serves)
	if len(c.claim.IDs) > 0 {
		s.fixed = []candidate{}
		err := w.query("named", func(v []driverValue) error {
			k := scanCandidate(v)
			if same := func(o candidate) bool { return o.no == k.no }; !c.tried[k.no] && !slices.ContainsFunc(s.fixed, same) {
				s.fixed = append(s.fixed, k)
			}
			return nil
		}, names(c.claim.IDs...), s.owners, workflows, versions)
		if err == nil {
			err = c.readQueues(w, s, queuesOf(s.fixed))
		}
		return s, err
	}
	listed := c.listed()
	err = w.query("due", func(v []driverValue) error {
		k := scanCandidate(v)
		switch {
		case c.tried[k.no]:
		case !k.place:
			s.free = append(s.free, k)
		default:
			s.line(k.queue).timed = append(s.line(k.queue).timed, k)
		}
		return nil
	}, int64(all.now), s.owners, workflows, versions, listed, c.claim.AnyQueue, int64(c.reach(want)), int64(maxTimed+len(c.tried)))
	if err != nil || listed == "{}" && !c.claim.AnyQueue {
		return s, err
	}
	name, args := "lanes_listed", []driverValue{workflows, versions, listed}
	if c.claim.AnyQueue {
		name, args = "lanes_any", args[:2]
	}
	err = w.query(name, func(v []driverValue) error {
		l := s.line(v[3].(string))
		l.lanes = append(l.lanes, lane{store.Status(v[0].(string)), v[1].(string), v[2].(string)})
		return nil
	}, args...)
	if err != nil {
		return nil, err
	}
	if err := c.readQueues(w, s, slices.Sorted(maps.Keys(s.lines))); err != nil {
		return nil, err
	}
	return s, c.readLines(w, s, want)
}

// line returns the line of a queue, and adds it to s.
func (s *survey) line(queue string) *line {
	l := s.lines[queue]
	if l == nil {
		l = &line{Queue: store.Queue{Name: queue}, now: s.now}
		s.lines[queue] = l
	}
	return l
}

// reach is how many runs to look at for want of them: those that were tried in vain are
// still there.
func (c *claiming) reach(want int) int { return c.spare(want) + len(c.tried) - len(c.taken) }

// listed returns the named queues that the claim lists.
func (c *claiming) listed() driverValue {
	var a array
	for _, q := range c.claim.Queues {
		if holdable(q.Queue) && q.Queue != "" {
			a.text(q.Queue)
		}
	}
	return a.value()
}

func scanCandidate(v []driverValue) candidate {
	k := candidate{
		no: v[0].(int64), queue: v[1].(string), partition: v[2].(string), status: store.Status(v[3].(string)), place: v[7].(bool),
	}
	k.rank = store.Rank(store.Time(v[6].(int64)), int32(v[5].(int64)))
	return k
}

// queuesOf returns the queues in which candidates need places.
func queuesOf(list []candidate) (queues []string) {
	for i := range list {
		if list[i].place && !slices.Contains(queues, list[i].queue) {
			queues = append(queues, list[i].queue)
		}
	}
	slices.Sort(queues)
	return queues
}

// readQueues reads queues and what is in use of them.
func (c *claiming) readQueues(w *wire, s *survey, queues []string) error {
	if len(queues) == 0 {
		return nil
	}
	for _, name := range queues {
		s.line(name).room, _ = c.claim.Room(name)
	}
	if err := readRows(w, "queues_of", s.lines, queues); err != nil {
		return err
	}
	return readUse(w, s.lines, queues, false)
}

// readRows reads the rows of queues with one of the statements that do.
func readRows(w *wire, statement string, lines map[string]*line, queues []string) error {
	return w.query(statement, func(v []driverValue) error {
		q, turn, begun, err := scanQueue(v)
		l := lines[q.Name]
		l.Queue, l.known, l.turn, l.begun = q, true, turn, begun
		return err
	}, texts(queues...))
}

// readUse reads what is in use of those queues that have limits. With locked, they
// are locked for this claim.
func readUse(w *wire, lines map[string]*line, queues []string, locked bool) error {
	var limited, parted, ahead []string
	for _, name := range queues {
		l := lines[name]
		l.use = gate.Use{}
		if l.limited() {
			limited = append(limited, name)
		}
		if l.MaxPerPartition > 0 {
			l.use.Parts = map[string]int{}
			parted = append(parted, name)
		}
	}
	if len(limited) == 0 {
		return nil
	}
	err := w.query("queue_use", func(v []driverValue) error {
		l := lines[v[0].(string)]
		l.now, l.use.Placed = store.Time(v[1].(int64)), int(v[2].(int64))
		// All that matters of the claims in the window is how many there are and
		// when the one began whose age decides.
		l.use.Begun = slices.Repeat([]store.Time{min(store.Time(v[4].(int64)), l.now)}, int(v[3].(int64)))
		if v[5].(bool) {
			ahead = append(ahead, l.Name)
		}
		return nil
	}, texts(limited...))
	if err != nil {
		return err
	}
	if locked {
		for _, name := range ahead {
			if _, err := w.exec("begun_clamp", name, int64(lines[name].now)); err != nil {
				return err
			}
		}
	}
	if len(parted) == 0 {
		return nil
	}
	return w.query("queue_parts", func(v []driverValue) error {
		lines[v[0].(string)].use.Parts[v[1].(string)] = int(v[2].(int64))
		return nil
	}, texts(parted...))
}

// stretch is a lane of which partitions are read: those after the turn, or those before.
type stretch struct {
	line *line
	lane lane
	wrap bool
	read int
	last string
}

// readLines reads as much of the lines as a plan for want runs needs.
func (c *claiming) readLines(w *wire, s *survey, want int) error {
	reach := c.reach(want)
	var stretches []*stretch
	var statuses, workflows, versions, queues, lows, highs, fullQueues, fullParts array
	for _, name := range slices.Sorted(maps.Keys(s.lines)) {
		l := s.lines[name]
		l.order, l.cut, l.full = nil, false, false
		g := l.gate()
		if g.Closed() {
			continue
		}
		l.order = []*part{}
		for _, lane := range l.lanes {
			if lane.status == store.Pending && !g.Begins() {
				l.full = true
				continue
			}
			for _, wrap := range []bool{false, true} {
				stretches = append(stretches, &stretch{line: l, lane: lane, wrap: wrap})
				statuses.text(string(lane.status))
				workflows.text(lane.workflow)
				versions.text(lane.version)
				queues.text(name)
				if wrap {
					lows.text("")
					highs.text(l.turn)
				} else {
					lows.text(l.turn + "\x01") // the next text in the order of bytes
					highs.null()
				}
			}
		}
		for partition, n := range l.use.Parts {
			if n >= l.MaxPerPartition {
				fullQueues.text(name)
				fullParts.text(partition)
			}
		}
	}
	type place struct {
		*stretch
		partition string
	}
	var places []place
	if len(stretches) > 0 {
		err := w.query("line_parts", func(v []driverValue) error {
			st := stretches[v[0].(int64)-1]
			if v[3].(bool) {
				st.line.full = true
				return nil
			}
			st.read++
			st.last = v[1].(string)
			places = append(places, place{st, st.last})
			return nil
		}, statuses.value(), workflows.value(), versions.value(), queues.value(), lows.value(), highs.value(), fullQueues.value(), fullParts.value(), int64(reach))
		if err != nil {
			return err
		}
	}
	// The order is known as far as no stretch was cut.
	bounds := map[*line]*bound{}
	for _, st := range stretches {
		b := bounds[st.line]
		if b == nil {
			b = &bound{}
			bounds[st.line] = b
		}
		if st.read >= reach {
			b.lower(st.wrap, st.last)
		}
	}
	parts := map[*line]map[string]*part{}
	for _, l := range s.lines {
		parts[l] = map[string]*part{}
		for _, k := range l.timed {
			add := bounds[l] == nil || bounds[l].reaches(l.turn, k.partition)
			if l.order != nil && add && !(l.MaxPerPartition > 0 && l.use.Parts[k.partition] >= l.MaxPerPartition) {
				partOf(parts[l], k.partition)
			} else {
				l.full = true
			}
		}
	}
	places = slices.DeleteFunc(places, func(p place) bool { return !bounds[p.line].reaches(p.line.turn, p.partition) })
	for _, p := range places {
		partOf(parts[p.line], p.partition)
	}
	// Each partition gives its share, and some more, in case others give less.
	statuses, workflows, versions, queues = array{}, array{}, array{}, array{}
	var partitions, most array
	shares := make([]int, len(places))
	for i, p := range places {
		statuses.text(string(p.lane.status))
		workflows.text(p.lane.workflow)
		versions.text(p.lane.version)
		queues.text(p.line.Name)
		partitions.text(p.partition)
		shares[i] = reach/len(parts[p.line]) + 2 + len(c.tried) - len(c.taken)
		most.int(int64(shares[i]))
	}
	heads := make([][]candidate, len(places))
	if len(places) > 0 {
		err := w.query("line_heads", func(v []driverValue) error {
			i := v[0].(int64) - 1
			heads[i] = append(heads[i], candidate{
				no: v[1].(int64), queue: places[i].line.Name, partition: places[i].partition, status: places[i].lane.status,
				rank: store.Time(v[2].(int64)), place: true,
			})
			return nil
		}, statuses.value(), workflows.value(), versions.value(), queues.value(), partitions.value(), s.owners, most.value())
		if err != nil {
			return err
		}
	}
	// Between what was read and what was not, the order is not known.
	ends := map[*part]*[2]*candidate{}
	for i, p := range places {
		pt := parts[p.line][p.partition]
		for _, k := range heads[i] {
			if !c.tried[k.no] {
				pt.runs[k.kind()] = append(pt.runs[k.kind()], k)
			}
		}
		if len(heads[i]) < shares[i] {
			continue
		}
		last := &heads[i][len(heads[i])-1]
		if ends[pt] == nil {
			ends[pt] = new([2]*candidate)
		}
		if end := &ends[pt][last.kind()]; *end == nil || before(last, *end) {
			*end = last
		}
	}
	for _, l := range s.lines {
		if l.order == nil {
			continue
		}
		for _, k := range l.timed {
			if pt := parts[l][k.partition]; pt != nil {
				pt.runs[k.kind()] = append(pt.runs[k.kind()], k)
			}
		}
		for _, pt := range parts[l] {
			for kind := range pt.runs {
				slices.SortFunc(pt.runs[kind], func(a, b candidate) int { return compare(&a, &b) })
				if end := ends[pt]; end != nil && end[kind] != nil {
					pt.cut[kind] = true
					pt.runs[kind] = slices.DeleteFunc(pt.runs[kind], func(k candidate) bool { return before(end[kind], &k) })
				}
			}
			l.order = append(l.order, pt)
		}
		slices.SortFunc(l.order, func(a, b *part) int {
			return cmp.Or(compareBool(a.name <= l.turn, b.name <= l.turn), cmp.Compare(a.name, b.name))
		})
		if b := bounds[l]; b != nil {
			l.cut = b.cut
		}
	}
	return nil
}

func partOf(parts map[string]*part, name string) *part {
	p := parts[name]
	if p == nil {
		p = &part{name: name}
		parts[name] = p
	}
	return p
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// bound is how far the order of partitions is known.
type bound struct {
	cut  bool
	wrap bool
	last string
}

func (b *bound) lower(wrap bool, last string) {
	if !b.cut || compareBool(wrap, b.wrap) < 0 || wrap == b.wrap && last < b.last {
		b.cut, b.wrap, b.last = true, wrap, last
	}
}

// reaches reports whether a partition lies within what is known.
func (b *bound) reaches(turn, partition string) bool {
	if !b.cut {
		return true
	}
	wraps := partition <= turn
	return compareBool(wraps, b.wrap) < 0 || wraps == b.wrap && partition <= b.last
}
