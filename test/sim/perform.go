package sim

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/holdfast-dev/holdfast/durable"
)

// Input is that of every run: which part of the program it is, and its generation.
type Input struct {
	Path string `json:"path,omitempty"`
	Gen  int    `json:"gen,omitempty"`

	Start int `json:"start,omitempty"` // of a Debounce: its number
}

// signalled is the value of every signal.
const signalled = "signalled"

// workflowName is that of the one workflow, which root runs and children share.
const workflowName = "program"

func (s *sim) ref() *durable.Workflow[Input, string] {
	return durable.Ref[Input, string](workflowName)
}

// workflow makes the workflow of one process.
func (s *sim) workflow(p *process, o ...durable.DefineOption) *durable.Workflow[Input, string] {
	return durable.Define(workflowName, func(ctx context.Context, in Input) (string, error) {
		s.performs(durable.RunID(ctx), in.Path)
		s.bounces.executes(s, durable.RunID(ctx), in)
		x := s.ledger.pass(p, durable.RunID(ctx), in.Gen, durable.RunVersion(ctx))
		prefix := in.Path
		if prefix != "" {
			prefix += "."
		}
		out, err := x.program(ctx, "", prefix, s.world.Program.at(in.Path))
		x.returned(out, err)
		return out, err
	}, o...)
}

// program performs p, whose paths begin with prefix, in a scope, and returns what it
// comes to.
func (x *pass) program(ctx context.Context, scope, prefix string, p Program) (string, error) {
	var out []string
	for i := range p {
		n := &p[i]
		v, err := x.node(ctx, scope, fmt.Sprint(prefix, i), n)
		if n.Do == Renew && err != nil {
			return "", err
		}
		if err != nil && !n.Handled {
			return "", err
		}
		if err != nil {
			v = "!" + classify(err)
		}
		out = append(out, v)
	}
	return "(" + strings.Join(out, " ") + ")", nil
}

// node performs one node and has its result looked at.
func (x *pass) node(ctx context.Context, scope, path string, n *Node) (v string, err error) {
	switch n.Do {
	case Block:
		return x.program(ctx, scope, path+".", n.Body)
	case Cleanup:
		v, err := x.program(ctx, scope, path+".", n.Body)
		if err != nil {
			_, _ = x.program(ctx, scope, path+"/", n.Then)
		}
		return v, err
	case Change:
		if x.takes(func() bool { return durable.Patched(ctx, path) }) == newWay {
			return x.program(ctx, scope, path+".", n.Body)
		}
		return x.program(ctx, scope, path+"/", n.Then)
	case Look:
		return "", context.Cause(ctx)
	case Fail:
		return "", errors.New("failed at " + path)
	case Panic:
		panic("at " + path)
	case Exit:
		runtime.Goexit()
	case Renew:
		if x.gen+1 >= n.Max {
			return "", nil
		}
		in, _, _ := strings.Cut(path, "\n")
		return "", durable.Continue(ctx, Input{Path: parent(in), Gen: x.gen + 1})
	}
	v, err = x.call(ctx, scope, path, n)
	x.saw(scope, path, n, v, err)
	return v, err
}

// parent returns the path of the node in whose body a node is.
func parent(path string) string {
	i := strings.LastIndexAny(path, "./")
	if i < 0 {
		return ""
	}
	return path[:i]
}

// call makes the durable call of a node.
func (x *pass) call(ctx context.Context, scope, path string, n *Node) (string, error) {
	name := x.name(path, n)
	switch n.Do {
	case Step:
		return durable.Step(ctx, name, x.body(scope, path, n))
	case Relaxed:
		return durable.Step(ctx, name, x.body(scope, path, n), durable.Relaxed())
	case Long:
		return durable.Step(ctx, name, x.body(scope, path, n), durable.LongOperation())
	case Retry, Progress, Nested:
		return durable.Retry(ctx, name, n.policy(), x.body(scope, path, n))
	case Transact:
		return x.transact(ctx, name, scope, path, n)
	case Seek:
		return durable.Seek(ctx, name, n.policy(), x.body(scope, path, n), accepted)
	case Once:
		return durable.Once(ctx, name, x.body(scope, path, n))
	case Settled:
		return durable.Once(ctx, name, x.body(scope, path, n), durable.Reconcile(x.happened(path)))
	case Draw:
		drawn := fmt.Sprint(durable.NewID(ctx), durable.Rand(ctx).Uint64(), durable.Now(ctx).UnixMicro())
		return durable.Step(ctx, name, x.body(scope, path, n), durable.WithInput(drawn))
	case Sleep, Until:
		began, asked := durable.Now(ctx), x.firstAsked(scope, path)
		var err error
		if n.Do == Sleep {
			err = durable.Sleep(ctx, n.For)
		} else {
			asked = began // that Now shows, which may be before the workflow came here
			err = durable.SleepUntil(ctx, began.Add(n.For))
		}
		if err == nil {
			x.askWait(path, asked, n.For)
		}
		if slept := durable.Now(ctx).Sub(began); err == nil && slept < n.For && !x.sim.world.clocksDiffer() {
			x.sim.fail("%s: the sleep at %s lasted %s and not %s", x.run, path, slept, n.For)
		}
		return "", err
	case Await:
		return x.await(ctx, scope, path, n)
	case Answer:
		return x.answer(ctx, path, n)
	case Approve:
		return x.approve(ctx, scope, path, n)
	case Drain:
		return "", x.drain(ctx, path, n)
	case Sync:
		return "", durable.Checkpoint(ctx)
	case Publish:
		return "", durable.Publish(ctx, "state", path)
	case Tag:
		return "", durable.SetAttributes(ctx, map[string]string{"at": path})
	case Undo:
		return "", durable.Compensate(ctx, name, func(ctx context.Context) error {
			x.sim.ledger.undoes(x, scope+path)
			_, err := x.body(scope, path, n)(ctx)
			return err
		})
	}
	return x.structure(ctx, scope, path, n)
}

// name returns the name of the call of a node.
func (x *pass) name(path string, n *Node) string {
	name := x.sim.ways[path] + string(n.Do)
	more := max(0, x.sim.world.Names-len(name))
	return name + strings.Repeat("%", more/3) + strings.Repeat("x", more%3) // "%" is three bytes in a key
}

// await waits for a signal. It waits again after one of a wrong type.
func (x *pass) await(ctx context.Context, scope, path string, n *Node) (string, error) {
	asked := x.firstAsked(scope, path)
	var o []durable.AwaitOption
	if n.For > 0 {
		o = append(o, durable.Timeout(n.For))
	}
	for refused := 0; ; refused++ {
		v, err := durable.Await[string](ctx, path, o...)
		var wrong *durable.SignalTypeError
		switch {
		case errors.Is(err, durable.ErrTimeout):
			x.askWait(path, asked, n.For)
			x.gotMail(path, "timeout")
			return "timeout", nil
		case err == nil:
			x.gotMail(path, v)
			return v, nil
		case !errors.As(err, &wrong) || refused > 10:
			return v, err
		}
		x.sim.ledger.refused(x, path, refused+1)
	}
}

// structure makes a call that has calls in it.
func (x *pass) structure(ctx context.Context, scope, path string, n *Node) (string, error) {
	name := x.name(path, n)
	inner := func(i int) string { return fmt.Sprintf("%s%s[%d]/", scope, path, i) }
	branch := func(i int) func(ctx context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			return x.branch(ctx, inner(i), path+".", i, n.Body[i])
		}
	}
	item := func(ctx context.Context, i int) (string, error) { return x.program(ctx, inner(i), path+".", n.Body) }
	items := make([]int, n.Max)
	for i := range items {
		items[i] = i
	}
	switch n.Do {
	case Go, First:
		var fs []*durable.Future[string]
		for i := range n.Body {
			fs = append(fs, durable.Go(ctx, name, branch(i)))
		}
		_, meanwhile := x.program(ctx, scope, path+"/", n.Then)
		if n.Do == First && meanwhile == nil {
			i, v, err := durable.First(ctx, "won", fs...)
			return fmt.Sprint(i, v), err
		}
		var out []string
		errs := []error{meanwhile}
		for _, f := range fs {
			v, err := f.Wait(ctx)
			out, errs = append(out, v), append(errs, err)
		}
		return strings.Join(out, ","), errors.Join(errs...)
	case Group:
		g := durable.NewGroup(ctx)
		for i := range n.Body {
			g.Go(name, func(ctx context.Context) error { _, err := branch(i)(ctx); return err })
		}
		return "", g.Wait()
	case Map:
		vs, err := durable.Map(ctx, name, items, durable.MapOptions{Concurrency: 2}, item)
		return strings.Join(vs, ","), err
	case MapSeq:
		return durable.MapSeq(ctx, name, n.sequence(items), durable.MapOptions{Concurrency: 2}, item, "", n.fold)
	case Child:
		return x.child(ctx, path, n)
	}
	return "", fmt.Errorf("sim: %q is no kind of node", n.Do)
}

// branch performs one node as a branch of its own.
func (x *pass) branch(ctx context.Context, scope, prefix string, i int, n Node) (string, error) {
	v, err := x.node(ctx, scope, fmt.Sprint(prefix, i), &n)
	if err != nil && n.Handled {
		return "!" + classify(err), nil
	}
	return v, err
}

// child starts a child and waits for it, perhaps twice at a time.
func (x *pass) child(ctx context.Context, path string, n *Node) (string, error) {
	id := durable.AutoID
	if n.ID == AsDerived {
		id = x.run + "/" + workflowName
	} else if n.ID != "" {
		id = fmt.Sprintf("%s%s-%d", strings.ReplaceAll(n.ID, "*", x.run), path, x.gen)
	}
	var o []durable.StartOption
	if n.How == ByLeave {
		o = append(o, durable.Abandon())
	}
	kid, err := x.sim.ref().Start(ctx, id, Input{Path: path}, o...)
	if err != nil {
		return "", err
	}
	if n.ID != "" && kid.ID() != id {
		x.sim.fail("%s: the child at %s was to have the id %s, and has %s", x.run, path, id, kid.ID())
	}
	if n.How == ByLeave {
		return "left", nil
	}
	if n.Max < 2 {
		return kid.Wait(ctx)
	}
	other := durable.Go(ctx, "waiter", kid.Wait)
	v, err := kid.Wait(ctx)
	w, again := other.Wait(ctx)
	if stopped := isStop(classify(err)) || isStop(classify(again)); !stopped && (v != w || classify(err) != classify(again)) {
		x.sim.fail("%s: two that wait for one child got %q, %v and %q, %v", x.run, v, err, w, again)
	}
	return v, err
}

// classify puts an error of a durable call into one class: "" for nil, "gone" for what
// ends an execution and is no outcome.
func classify(err error) string {
	var failed *durable.StepError
	switch {
	case err == nil:
		return ""
	case isGone(err), isChanged(err):
		return "gone"
	case errors.Is(err, durable.ErrCancelled), errors.Is(err, durable.ErrRunCancelled):
		return "cancelled"
	case errors.Is(err, durable.ErrDeadline):
		return "deadline"
	case errors.Is(err, durable.ErrUnknownOutcome):
		return "unknown outcome"
	case errors.As(err, &failed):
		return "failed"
	}
	return "error"
}

// isStop reports whether a class of errors is of what ends an execution or a run.
func isStop(class string) bool { return class == "gone" || class == "cancelled" || class == "deadline" }

func isGone(err error) bool {
	var unrecorded *durable.UnrecordedError
	if errors.As(err, &unrecorded) {
		return true
	}
	for _, gone := range []error{durable.ErrLost, durable.ErrShutdown, durable.ErrClosed, durable.ErrUnloaded, durable.ErrPaused, durable.ErrLeaseExpired, durable.ErrInterrupted, durable.ErrOutsideRun, durable.ErrUnavailable, durable.ErrContinued} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}
