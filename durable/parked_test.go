package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// After a bad deploy is rolled back, Recover continues what the bad code has parked; a build
// that does not fit writes nothing.
func TestRecoverContinuesWhatABadDeployHasParked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const runs = 50
		build := func(name string, held string, calls ...string) (durable.Definition, durable.Options) {
			wf := called(held, plainly(calls...))
			o := with(wf)
			o.Build, o.Name = name, name
			return wf, o
		}
		first, good := build("good", "b", "a", "b", "c")
		w.boot(t, good)
		for i := range runs {
			start(t, w, first.(*durable.Workflow[int, string]), fmt.Sprint("r-", i), 0)
		}
		synctest.Wait()

		_, bad := build("bad", "", "other", "b", "c")
		w.reboot(t, bad)
		synctest.Wait()
		parked := func() (seqs []int64) {
			for i := range runs {
				row := w.row(fmt.Sprint("r-", i))
				require.Equal(t, durable.CodeDefinitionChanged, row.Code)
				seqs = append(seqs, row.Last.Seq)
			}
			return seqs
		}
		before := parked()
		for _, name := range []string{"bad", "worse", "worse"} {
			_, o := build(name, "", "other", "b", "c")
			report := w.reboot(t, o)
			require.Len(t, report.Stuck, runs)
			require.Empty(t, report.Unparked)
			require.Contains(t, report.Stuck[0].Reason, "version 1, build good", "the code that fits is named")
			require.Equal(t, before, parked(), "nothing is written about what does not fit")
		}

		again, rolledBack := build("good", "", "a", "b", "c")
		report := w.reboot(t, rolledBack)
		require.Len(t, report.Unparked, runs)
		require.Empty(t, report.Stuck)
		for i := range runs {
			out, err := wait(t, w, again.(*durable.Workflow[int, string]), fmt.Sprint("r-", i))
			require.NoError(t, err)
			require.Equal(t, "done", out)
		}
	})
}

// parkByDeploy starts run r, which waits in its step b, and deploys code that it does not fit.
func parkByDeploy(t *testing.T, w *world) {
	t.Helper()
	wf := called("b", plainly("a", "b"))
	w.boot(t, with(wf))
	start(t, w, wf, "r", 0)
	synctest.Wait()
	w.reboot(t, with(called("", plainly("other"))))
	synctest.Wait()
	require.Equal(t, durable.CodeDefinitionChanged, w.row("r").Code)
}

// A pause does not keep back what a cancel ends, whichever of the two came first.
func TestRecoverCancelsAParkedRunThatIsPaused(t *testing.T) {
	for _, first := range []string{"cancel", "pause"} {
		t.Run(first+" first", func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				parkByDeploy(t, w)
				acts := []func() error{
					func() error { return w.eng.Cancel(w.ctx(), "r", "enough") },
					func() error { return w.eng.Pause(w.ctx(), "r", "wait") },
				}
				if first == "pause" {
					slices.Reverse(acts)
				}
				for _, act := range acts {
					require.NoError(t, act())
				}
				synctest.Wait()
				before := w.row("r").Last.Seq
				report := w.reboot(t, with(called("", plainly("another"))))
				require.Len(t, report.Stuck, 1)
				require.Equal(t, durable.CodeDefinitionChanged, report.Stuck[0].Code, "not the pause, which the cancel ends")
				require.Equal(t, before, w.row("r").Last.Seq, "nothing is written about what does not fit")

				require.Equal(t, []string{"r"}, w.reboot(t, with(called("", plainly("a", "b")))).Unparked)
				w.eventually("r", store.Cancelled)
				found, err := operate.On(w.eng).Verify(w.ctx(), "r")
				require.NoError(t, err)
				require.Empty(t, found.Findings)
			})
		})
	}
}

func TestRecoverDoesNotCallARunStuckWhosePauseACancelEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := called("b", plainly("a", "b"))
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		synctest.Wait()
		require.NoError(t, w.eng.Pause(w.ctx(), "r", "wait"))
		synctest.Wait()
		require.NoError(t, w.eng.Close())
		require.NoError(t, w.open(t, durable.Options{}).Cancel(context.Background(), "r", "enough"))
		require.Equal(t, store.Interrupted, w.row("r").Status)
		require.Empty(t, w.reboot(t, with(wf)).Stuck)
		w.eventually("r", store.Cancelled)
	})
}

// A wait under a deadline of the context cannot be recorded. The code that is mended goes on by
// itself; the same build would only park the run again, after its bodies ran once more.
func TestRecoverOfAMendedBuildContinuesWhatCouldNotBeRecorded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		build := func(name string, mended bool) (*durable.Workflow[int, int], durable.Options) {
			wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
				if !mended {
					within, stop := context.WithTimeout(ctx, time.Hour)
					defer stop()
					ctx = within
				}
				return durable.Await[int](ctx, "go on")
			})
			o := with(wf)
			o.Build = name
			return wf, o
		}
		wf, o := build("1", false)
		w.boot(t, o)
		_, err := start(t, w, wf, "r", 0).Wait(w.ctx())
		var stopped *durable.InterruptedError
		require.ErrorAs(t, err, &stopped)
		require.Equal(t, durable.CodeUnrecorded, stopped.Code)
		const advice = "mend what the reason names: durable.Recover of another build (Options.Build) then continues it"
		require.ErrorContains(t, err, advice)
		require.NotContains(t, err.Error(), "a process that serves it")
		before := w.row("r").Last.Seq
		for _, name := range []string{"1", "", "2"} {
			_, o := build(name, false)
			report := w.reboot(t, o)
			require.Empty(t, report.Unparked)
			require.Len(t, report.Stuck, 1)
			require.Contains(t, report.Stuck[0].Next, advice)
			synctest.Wait()
			require.Equal(t, before, w.row("r").Last.Seq, "nothing is written about what is not mended")
		}
		_, o = build("", true)
		require.Empty(t, w.reboot(t, o).Unparked, "whether it is another build is not known")
		_, o = build("3", true)
		require.Equal(t, []string{"r"}, w.reboot(t, o).Unparked)
		require.NoError(t, w.eng.Signal(w.ctx(), "r", "go on", 7))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 7, out)
	})
}

// Recover continues only some of the runs that have stopped: nobody is told to wait for it in vain.
func TestTheAdviceOfAnInterruptedRunIsThatOfItsCode(t *testing.T) {
	for code, says := range map[string]string{
		"":                            `or let durable.Recover(ctx) of a process that serves it continue it`,
		durable.CodeNotRegistered:     `or let durable.Recover(ctx) of a process that serves it continue it`,
		durable.CodeDamaged:           `Verify(ctx, "r")`,
		durable.CodeDefinitionChanged: `run the code that recorded it`,
		durable.CodeShutdown:          `operate.On(engine).Resume(ctx, "r")`,
	} {
		err := &durable.InterruptedError{RunID: "r", Workflow: "w", Code: code, Reason: "why"}
		require.ErrorContains(t, err, says, code)
		if code != "" && code != durable.CodeNotRegistered {
			require.NotContains(t, err.Error(), "durable.Recover", code)
		}
	}
}

// Whose policy leaves runs to a person is not overruled.
func TestRecoverLeavesParkedRunsToAPersonUnderTheirPolicy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		parkByDeploy(t, w)
		o := with(called("", plainly("a", "b")))
		o.OnBoot = durable.LeaveOnBoot
		report := w.reboot(t, o)
		require.Empty(t, report.Unparked)
		require.Len(t, report.Stuck, 1)
		require.Equal(t, store.Interrupted, w.row("r").Status)
		require.Equal(t, []string{"r"}, w.reboot(t, with(called("", plainly("a", "b")))).Unparked)
	})
}

// The mail of a run is no part of its history: a rehearsal looks at what its waits would get.
func TestRecoverWritesNothingAboutARunWhoseMailItCannotRead(t *testing.T) {
	await := func(ctx context.Context) (string, error) { return durable.Await[string](ctx, "s") }
	request := func(ctx context.Context) (string, error) {
		q, err := durable.AwaitRequest[string](ctx, "s")
		if err != nil {
			return "", err
		}
		return q.Value, q.Reply(ctx, 1)
	}
	child := durable.Define("child", func(ctx context.Context, _ int) (string, error) { return "hello", nil })
	signal := func(w *world) error { return w.eng.Signal(w.ctx(), "r", "s", "hello") }
	ask := func(w *world) error {
		ctx, stop := context.WithTimeout(w.ctx(), time.Second)
		defer stop()
		_, err := durable.Request[int](ctx, "r", "s", "hello")
		if errors.Is(err, context.DeadlineExceeded) {
			return nil // nobody can read it
		}
		return err
	}
	coded := func(defs ...durable.Definition) durable.Options {
		o := with(defs...)
		o.Codec = namedJSON{durable.JSON()}
		return o
	}
	keyed := func(defs ...durable.Definition) durable.Options { return encrypted(keysOf("k1"), defs...) }
	for name, c := range map[string]struct {
		fn    func(ctx context.Context) (string, error)
		send  func(w *world) error
		early bool // it comes before the run waits for it
		other func(defs ...durable.Definition) durable.Options
	}{
		"a key":                             {await, signal, false, keyed},
		"a codec":                           {await, signal, false, coded},
		"a codec, before the wait":          {await, signal, true, coded},
		"a request":                         {request, ask, false, coded},
		"a request, before the run waits":   {request, ask, true, coded},
		"the outcome of a child, and a key": {nil, nil, false, keyed},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				waiting := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
					if c.fn == nil {
						h, err := durable.Ref[int, string]("child").Enqueue(ctx, "c", 0)
						if err != nil {
							return "", err
						}
						return h.Wait(ctx)
					}
					if c.early {
						if err := durable.Sleep(ctx, 5*time.Second); err != nil {
							return "", err
						}
					}
					return c.fn(ctx)
				})
				w.boot(t, with(waiting))
				start(t, w, waiting, "r", 0)
				synctest.Wait()
				old := w.eng
				if c.send == nil {
					w.boot(t, c.other(child))
				} else {
					w.boot(t, c.other())
					require.NoError(t, c.send(w))
				}
				require.Equal(t, durable.CodeUndecodable, w.eventually("r", store.Interrupted).Code)
				require.NoError(t, old.Close())
				before := w.row("r").Last.Seq
				for range 3 {
					report := w.reboot(t, with(waiting))
					require.Empty(t, report.Unparked)
					require.Len(t, report.Stuck, 1)
					synctest.Wait()
					_, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{})
					var unread *durable.UndecodableError
					require.ErrorAs(t, err, &unread)
				}
				require.Equal(t, before, w.row("r").Last.Seq, "nothing is written about what does not fit")
				w.reboot(t, c.other(waiting))
				out, err := wait(t, w, waiting, "r")
				require.NoError(t, err)
				require.Equal(t, "hello", out)
			})
		})
	}
}

// namedJSON is a codec that other programs lack.
type namedJSON struct{ durable.Codec }

func (namedJSON) Name() string { return "named" }

// A rehearsal runs no body: what the body of a step cannot read would park the run again at each boot,
// after the body has run once more.
func TestRecoverRunsNoBodyAgainForWhatItCannotRead(t *testing.T) {
	type before struct{ N int }
	type after struct{ N string }
	refuse := func(before) error { return errors.New("not yet") }
	for name, c := range map[string]struct {
		first, then func(ctx context.Context) (before, error)
	}{
		"progress": {
			func(ctx context.Context) (before, error) { return before{}, durable.SaveProgress(ctx, before{3}) },
			func(ctx context.Context) (before, error) {
				_, _, err := durable.Progress[after](ctx)
				return before{}, err
			},
		},
		"named progress": {
			func(ctx context.Context) (before, error) {
				return before{}, durable.SaveNamedProgress(ctx, "place", before{3})
			},
			func(ctx context.Context) (before, error) {
				_, _, err := durable.NamedProgress[after](ctx, "place")
				return before{}, err
			},
		},
		"the output of an attempt": {
			func(context.Context) (before, error) { return before{3}, nil },
			func(ctx context.Context) (before, error) {
				var v after
				_, err := durable.Attempt(ctx).Failures[0].Output(&v)
				return before{}, err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				bodies := 0
				build := func(name string, body func(ctx context.Context) (before, error)) durable.Options {
					o := with(durable.Define("w", func(ctx context.Context, _ int) (before, error) {
						return durable.Seek(ctx, "s", durable.Policy{MaxAttempts: 9, Initial: time.Hour, Max: time.Hour}, func(ctx context.Context) (before, error) {
							bodies++
							return body(ctx)
						}, refuse)
					}))
					o.Build = name
					return o
				}
				o := build("1", c.first)
				w.boot(t, o)
				start(t, w, o.Workflows[0].(*durable.Workflow[int, before]), "r", 0)
				synctest.Wait()
				w.reboot(t, build("2", c.then))
				pass(2 * time.Hour)
				row := w.eventually("r", store.Interrupted)
				require.Equal(t, durable.CodeUndecodable, row.Code)
				was := bodies
				for range 3 {
					report := w.reboot(t, build("2", c.then))
					require.Empty(t, report.Unparked)
					require.Len(t, report.Stuck, 1)
					pass(2 * time.Hour)
				}
				require.Equal(t, was, bodies)
				require.Equal(t, row.Last.Seq, w.row("r").Last.Seq, "nothing is written about what does not fit")
				require.Equal(t, []string{"r"}, w.reboot(t, build("3", c.first)).Unparked, "another build may read it")
			})
		})
	}
}
