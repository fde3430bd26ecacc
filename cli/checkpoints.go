package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

func checkpointsCommand(a *app) *cobra.Command {
	g := a.group("checkpoints", "Look at and mend what is recorded of a run", `checkpoints lists what is recorded of a run, checks and repairs it, replaces a result,
and carries runs from one store to another. A checkpoint is an event of the history, and
its number is its ID. No event is ever changed: what is mended goes on on a new branch.`, `  durable checkpoints list order-42
  durable checkpoints validate order-42
  durable resume order-42 --from-checkpoint 2`, "checkpoint")
	g.AddCommand(checkpointsList(a), checkpointsShow(a), checkpointsValidate(a), checkpointsRepair(a), checkpointsEdit(a),
		checkpointsMigrate(a), checkpointsRestore(a), checkpointsExport(a), checkpointsImport(a), checkpointsDelete(a))
	return g
}

// checkpoint is one as --json prints it.
type checkpoint struct {
	ID      int64  `json:"id"`
	Run     string `json:"run"`
	Type    string `json:"type"`
	Step    string `json:"step,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Of      int    `json:"max_attempts,omitempty"`
	Outcome string `json:"outcome,omitempty"` // of the attempt: completed, failed
	Time    string `json:"time"`
	Size    int    `json:"size"`
	Version int    `json:"version"`
	Branch  int    `json:"branch"`
	Status  string `json:"status"` // ok, left behind, corrupt, incompatible

	at store.Time
}

func checkpointsList(a *app) *cobra.Command {
	var all bool
	var limit int
	cmd := a.command(spec{
		use: "list [ID]", aliases: []string{"ls"}, short: "List the checkpoints of a run, or of all", max: 1, ids: true,
		long: `list prints the checkpoints of a run, or without an id those of all runs, newest run
first: id, run, step, attempt, time, size, format version and status. --all shows the
bookkeeping of the engine and what was left behind on other branches, too.`,
		example: `  durable checkpoints list order-42
  durable checkpoints list order-42 --all
  durable resume order-42 --from-checkpoint 2`,
		do: func(c *invocation, args []string) error { return checkpoints(c, args, all, limit) },
	})
	cmd.Flags().BoolVar(&all, "all", false, "every event, of every branch")
	cmd.Flags().IntVar(&limit, "limit", 100, "of how many runs at most; 0: all")
	return cmd
}

func checkpoints(c *invocation, args []string, all bool, limit int) error {
	l, err := c.local()
	if err != nil {
		return err
	}
	var list []checkpoint
	for id, err := range ids(c, l, args, limit) {
		if err != nil {
			return err
		}
		of, err := checkpointsOf(c, l, id, all)
		if err != nil {
			return err
		}
		list = append(list, of...)
	}
	if len(list) == 0 {
		c.say("No checkpoints.")
	}
	t := show.Table{Head: []string{"ID", "RUN", "STEP", "ATTEMPT", "TIME", "SIZE", "VERSION", "STATUS"}, Wide: 2}
	for i := range list {
		p := &list[i]
		if c.flags.json {
			if err := c.out.JSON(p); err != nil {
				return err
			}
			continue
		}
		size := show.Bytes(int64(p.Size))
		if !c.out.TTY {
			size = strconv.Itoa(p.Size)
		}
		t.Rows = append(t.Rows, []string{show.Number(p.ID), p.Run, p.Step, p.attempt(), c.out.At(p.at), size, strconv.Itoa(p.Version), p.Status})
	}
	if len(t.Rows) > 0 {
		c.out.Table(t)
	}
	return nil
}

// ids yields the run that args name, or all runs, newest first.
func ids(c *invocation, l *target.Local, args []string, limit int) func(func(string, error) bool) {
	return func(yield func(string, error) bool) {
		if len(args) > 0 {
			yield(args[0], nil)
			return
		}
		f := store.Filter{Limit: 500}
		for n := 0; ; {
			p, err := l.Engine.List(c.ctx, f)
			if err != nil {
				yield("", err)
				return
			}
			for i := range p.Runs {
				if n++; limit > 0 && n > limit || !yield(p.Runs[i].ID, nil) {
					return
				}
			}
			if f.After = p.Next; p.Next == "" {
				return
			}
		}
	}
}

// checkpointsOf lists the checkpoints of one run, each with what Verify found. If the
// run cannot be read to its end, the list ends there.
func checkpointsOf(c *invocation, l *target.Local, id string, all bool) ([]checkpoint, error) {
	ctx := c.ctx
	v, err := operate.On(l.Engine).Verify(ctx, id)
	if err != nil {
		return nil, l.Lost(id, err)
	}
	worst := map[int64]string{}
	for _, f := range v.Findings {
		if f.Kind != operate.FoundOrphan && worst[f.Seq] != string(operate.FoundCorrupt) {
			worst[f.Seq] = string(f.Kind)
		}
	}
	h, err := l.Store.Load(ctx, id, store.Cursor{All: true, AfterMessage: 1<<63 - 1})
	if err != nil {
		return nil, l.Lost(id, err)
	}
	in := store.LineageOf(h.Branches, h.Run.Branch)
	var list []checkpoint
	for ev, err := range h.Events {
		if err != nil {
			break // Verify has reported it
		}
		inLineage := in.Has(&ev)
		if !all && (target.Bookkeeping(ev.Type) || !inLineage) {
			continue
		}
		p := checkpoint{
			ID: ev.Seq, Run: id, Type: string(ev.Type), Step: ev.Key, Attempt: int(ev.Attempt), Time: show.RFC3339(ev.At), Size: len(ev.Data) + len(ev.Payload),
			Version: formatOf(ev.Payload), Branch: int(ev.Branch), Status: "ok", at: ev.At,
		}
		p.Of, p.Outcome = outcomeOf(&ev)
		switch {
		case worst[ev.Seq] != "":
			p.Status = worst[ev.Seq]
		case !inLineage:
			p.Status = "left behind"
		}
		list = append(list, p)
	}
	return list, nil
}

// outcomeOf returns how an attempt ended, and how many there may be, where that is
// recorded.
func outcomeOf(ev *store.Event) (of int, outcome string) {
	var data struct {
		Max int `json:"max"`
	}
	_ = json.Unmarshal(ev.Data, &data) // Verify reports what cannot be read
	switch ev.Type {
	case store.StepCompleted:
		return data.Max, "completed"
	case store.AttemptFailed, store.StepFailed:
		return data.Max, "failed"
	}
	return 0, ""
}

// attempt is the attempt as a listing shows it: "2/5 failed".
func (p *checkpoint) attempt() string {
	text := show.Number(int64(p.Attempt))
	if text != "" && p.Of > 0 {
		text += fmt.Sprintf("/%d", p.Of)
	}
	if p.Outcome == "failed" {
		text = strings.TrimSpace(text + " failed")
	}
	return text
}

// formatOf returns the version of the format in which a payload was written, from its
// first line ("hf1 json …"); 1 for an event without a payload.
func formatOf(payload []byte) int {
	first, _, _ := bytes.Cut(payload, []byte(" "))
	if n, err := strconv.Atoi(string(bytes.TrimPrefix(first, []byte("hf")))); err == nil && n > 0 && bytes.HasPrefix(first, []byte("hf")) {
		return n
	}
	return 1
}

// eventView is a checkpoint in full.
type eventView struct {
	checkpoint
	TookMS  int64           `json:"took_ms"`
	Text    string          `json:"text"`
	Data    json.RawMessage `json:"data,omitempty"`
	Payload *payloadView    `json:"payload,omitempty"`
}

type payloadView struct {
	Type        string          `json:"type,omitempty"`
	Version     int             `json:"version,omitempty"`
	Codec       string          `json:"codec,omitempty"`
	Compression string          `json:"compression,omitempty"`
	KeyID       string          `json:"key_id,omitempty"`
	Value       json.RawMessage `json:"value,omitempty"`
	Error       string          `json:"error,omitempty"`
}

func checkpointsShow(a *app) *cobra.Command {
	return a.command(spec{
		use: "show ID CHECKPOINT", short: "Show one checkpoint with its value", min: 2, max: 2, ids: true,
		long: `show prints a checkpoint of a run in full, by its number or by the name of a step whose
outcome it is, with the value it holds. Values are user data: what is encrypted needs the
program that has the key.`,
		example: `  durable checkpoints show order-42 4
  durable checkpoints show order-42 charge --json`,
		do: func(c *invocation, args []string) error { return showCheckpoint(c, args[0], args[1]) },
	})
}

func showCheckpoint(c *invocation, id, name string) error {
	l, err := c.local()
	if err != nil {
		return err
	}
	seq, err := c.checkpoint(id, name)
	var no *operate.CheckpointError
	if errors.As(err, &no) && no.Seq != 0 {
		seq, err = no.Seq, nil // a failure, to which no run goes back, can be looked at
	}
	if err != nil {
		return err
	}
	list, err := checkpointsOf(c, l, id, true)
	if err != nil {
		return err
	}
	h, err := l.Store.Load(c.ctx, id, store.Cursor{All: true, After: seq - 1, AfterMessage: 1<<63 - 1})
	if err != nil {
		return l.Lost(id, err)
	}
	for ev, err := range h.Events {
		if err != nil {
			return err
		}
		if ev.Seq != seq {
			break
		}
		v := eventView{TookMS: ev.Took.Milliseconds(), Text: operate.Describe(ev), Data: ev.Data}
		for _, p := range list {
			if p.ID == seq {
				v.checkpoint = p
			}
		}
		if len(ev.Payload) > 0 {
			p, err := operate.On(l.Engine).Payload(id, ev)
			v.Payload = &payloadView{Type: p.Type, Version: p.Version, Codec: p.Codec, Compression: p.Compression, KeyID: p.KeyID, Value: target.JSON(p)}
			if err != nil {
				v.Payload.Error = err.Error()
			}
		}
		return c.print(v, func() { showEvent(c, &v) })
	}
	return &show.Failure{Code: "checkpoint", Exit: ExitNotFound, Message: fmt.Sprintf("%s has no checkpoint %d.", id, seq), Next: "List: " + c.self("checkpoints", "list", id)}
}

// stackIn returns the stack of the panic that an event says; empty if it says none.
func stackIn(data []byte) string {
	var of struct {
		Error struct{ Value durable.PanicError }
	}
	if json.Unmarshal(data, &of) != nil {
		return "" // an error with a value of another kind
	}
	return of.Error.Value.Stack
}

func showEvent(c *invocation, v *eventView) {
	c.out.Printf("%d  %s  %s\n", v.ID, show.Escape(v.Text), v.Status)
	c.out.Printf("Time     %s, took %s, branch %d\n", c.out.At(v.at), show.Length(v.took()), v.Branch)
	if len(v.Data) > 0 {
		c.out.Printf("Data     %s\n", show.Escape(string(v.Data)))
	}
	for line := range strings.Lines(stackIn(v.Data)) {
		c.out.Printf("  %s\n", show.Escape(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "  ")))
	}
	if p := v.Payload; p != nil {
		c.out.Printf("Payload  %s version %d, %s, %s\n", show.Escape(show.OrDash(p.Type)), p.Version, show.Escape(show.OrDash(p.Codec)), show.Bytes(int64(v.Size)))
		if p.Error != "" {
			c.out.Printf("         %s\n", show.Escape(p.Error))
			return
		}
		c.out.Printf("%s\n", show.Escape(string(p.Value)))
	}
}
