package postgres

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// beatAndLook is the name of a statement made of executor_beat, the one that reads all executors, and look.
const beatAndLook = "beat_and_look"

var numbered = regexp.MustCompile(`\$(\d)`)

// composeBeat makes the statement. What look asks for is as of the beat; its other parameters
// follow those of the beat.
func composeBeat(all sqlstore.Statements, executors string) string {
	look := numbered.ReplaceAllStringFunc(all.Text("look"), func(p string) string {
		if p == "$1" {
			return "(SELECT b.beat_at FROM beaten b)"
		}
		return fmt.Sprintf("$%d", p[1]-'0'+7)
	})
	return "WITH beaten (beat_at, until) AS (" + all.Text("executor_beat") + "\n), census AS (" + all.Text(executors) + "\n), looked AS (" + look + "\n) " +
		"SELECT c.*, b.beat_at, b.until, (SELECT COALESCE(pg_catalog.json_agg(pg_catalog.json_build_object('kind', l.kind, 'name', l.name, 'n', l.n) ORDER BY l.kind, l.ord), '[]')::text FROM looked l) " +
		"FROM census c CROSS JOIN beaten b"
}

// beating is a beat by that statement.
type beating struct {
	store    *Store
	executor store.Executor
	said     []driverValue
	looked   []byte // what look has found, as JSON
}

// beatAndLook beats, reads all executors and looks for what follows from the runs, in one
// statement. It looks on the assumption that the owners whose runs may be claimed are those of
// the last beat. If they are others, look is asked again.
func (b *beating) beatAndLook(w *wire, p *store.Pulse) error {
	s := b.store
	assumed := new(census).free()
	if last := s.suspects.free.Load(); last != nil {
		assumed = *last
	}
	all, registers, err := b.ask(w, p, assumed)
	if err != nil {
		return err
	}
	s.counts.commits.Add(1)
	all.beats(b.said, p.Now)
	if err := s.decideLive(all); err != nil {
		return err
	}
	if registers {
		if _, err := w.exec("forget_executors"); err != nil {
			return err
		}
	}
	if err := expire(w, all); err != nil {
		return err
	}
	if free := all.free(); free != assumed {
		s.suspects.free.Store(&free)
		return s.look(w, p, b.executor, all)
	}
	all.tell(p)
	return b.found(p)
}

// ask sends the statement. registers: the executor was not known before.
func (b *beating) ask(w *wire, p *store.Pulse, free driverValue) (all *census, registers bool, err error) {
	all = newCensus()
	workflows, versions := pairs(b.executor.Serves)
	err = w.query(beatAndLook, func(v []driverValue) error {
		if err := all.add(v); err != nil {
			return err
		}
		sc := scanner{v: v[len(v)-3:]}
		registers = sc.v[1] == nil
		p.Now = store.Time(sc.int())
		until := sc.int()
		p.Late, b.looked = until != 0 && int64(p.Now) >= until, sc.textBytes()
		return sc.err
	}, append(b.said, free, workflows, versions, b.executor.ID)...)
	return all, registers, err
}

func (b *beating) found(p *store.Pulse) error {
	var list []struct {
		Kind, Name string
		N          int64
	}
	if err := json.Unmarshal(b.looked, &list); err != nil {
		return fmt.Errorf("postgres: what a beat has found: %w", err)
	}
	for _, l := range list {
		find(p, l.Kind, l.Name, l.N)
	}
	return nil
}

// beats adds what an executor has just said of itself, which the statement that says so does not see.
func (c *census) beats(said []driverValue, at store.Time) {
	c.now = at
	own := slices.IndexFunc(c.rows, func(r sqlstore.ExecutorRow) bool { return r.ID == said[0] })
	if own < 0 {
		own = len(c.rows)
		c.rows = append(c.rows, sqlstore.ExecutorRow{StartedAt: int64(at)})
	}
	r := &c.rows[own]
	*r = sqlstore.ExecutorRow{
		ID: said[0].(string), Name: said[1].(string), Host: said[2].(string), Boot: said[3].(string), PID: said[4].(int64), Lease: said[5].(int64),
		Serves: said[6].(string), StartedAt: r.StartedAt, BeatAt: int64(at), Presence: said[7].(string),
	}
}
