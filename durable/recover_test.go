package durable_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// holding is a workflow whose first process never gets past its step.
func holding(name string, o ...durable.DefineOption) (*durable.Workflow[int, int], *hold) {
	h := &hold{}
	return durable.Define(name, func(ctx context.Context, in int) (int, error) {
		if err := durable.Do(ctx, "before", func(context.Context) error { return nil }); err != nil {
			return 0, err
		}
		return in + 1, durable.Do(ctx, "hold", h.body)
	}, o...), h
}

func TestRecoverOnAnEmptyStoreSaysSoAndChangesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf, _ := holding("w")
		for range 2 {
			w.log.clear()
			rep := w.boot(t, with(wf))
			require.Zero(t, rep)
			require.Equal(t, []string{
				"INFO Recovery complete: 0 workflows marked failed, 0 approvals restored. found=nothing to recover",
			}, w.log.find(""))
		}
		require.Empty(t, w.log.find("WARN"))
	})
}

func TestTheThreePolicies(t *testing.T) {
	for _, where := range []string{"of the engine", "of the workflow"} {
		for name, policy := range map[string]durable.BootPolicy{"default": 0, "resume": durable.ResumeOnBoot, "fail": durable.FailOnBoot, "leave": durable.LeaveOnBoot} {
			t.Run(name+" "+where, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					o := durable.Options{OnBoot: policy}
					wf, h := holding("w")
					if where == "of the workflow" {
						// It wins over another one of the engine.
						wf, h = holding("w", durable.OnBoot(policy))
						o.OnBoot = 0
						if policy == durable.ResumeOnBoot {
							o.OnBoot = durable.FailOnBoot
						} else if policy != 0 {
							o.OnBoot = durable.ResumeOnBoot
						}
					}
					o.Workflows = []durable.Definition{wf}
					w.open(t, o)
					start(t, w, wf, "r", 1)
					synctest.Wait()
					w.crash()
					w.expire()
					w.log.clear()
					rep := w.boot(t, o)
					switch policy {
					case durable.FailOnBoot:
						require.Equal(t, durable.Report{Failed: []string{"r"}}, rep)
						row := w.row("r")
						require.Equal(t, store.Failed, row.Status)
						require.Equal(t, "Server restarted while workflow was running", row.Reason)
						require.Equal(t, durable.CodeRestarted, row.Code)
						require.True(t, row.Recoverable)
						require.Empty(t, row.Owner)
						require.NotZero(t, row.EndedAt)
						events := w.events("r")
						last := events[len(events)-1]
						require.Equal(t, store.WorkflowFailed, last.Type)
						require.Contains(t, string(last.Data), `"recoverable":true`)
						require.Contains(t, string(last.Data), "Server restarted while workflow was running")
						lines := w.log.find("run=r")
						require.Len(t, lines, 1)
						require.Contains(t, lines[0], "INFO durable: run marked failed run=r")
						require.Len(t, w.log.find("INFO Recovery complete: 1 workflows marked failed, 0 approvals restored."), 1)
						require.Equal(t, 1, h.count())
						// Again: nothing is failed twice.
						rep = w.boot(t, o)
						require.Zero(t, rep)
						require.Equal(t, events, w.events("r"))
						// Only a person resumes it.
						require.NoError(t, resume(w.eng, w.ctx(), "r"))
						out, err := wait(t, w, wf, "r")
						require.NoError(t, err)
						require.Equal(t, 2, out)
						require.Equal(t, 2, h.count())
						row = w.row("r")
						require.Empty(t, row.Reason)
						require.Empty(t, row.Code)
					case durable.LeaveOnBoot:
						require.Equal(t, durable.Report{Left: []string{"r"}}, rep)
						before := w.events("r")
						pass(time.Hour)
						require.Equal(t, before, w.events("r"))
						require.Equal(t, store.Running, w.row("r").Status)
						require.Equal(t, 1, h.count())
						require.NoError(t, resume(w.eng, w.ctx(), "r"))
						_, err := wait(t, w, wf, "r")
						require.NoError(t, err)
					default:
						require.Equal(t, durable.Report{Resumed: []string{"r"}}, rep)
						require.Len(t, w.log.find("INFO durable: run resumed run=r"), 1)
						require.Contains(t, w.log.String(), "Recovery complete: 0 workflows marked failed, 0 approvals restored. resumed=1")
						out, err := wait(t, w, wf, "r")
						require.NoError(t, err)
						require.Equal(t, 2, out)
						require.EqualValues(t, 1, w.row("r").Resumes)
					}
				})
			})
		}
	}
}

func TestTheReasonOfFailOnBootCanBeReplaced(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf, _ := holding("w")
		o := durable.Options{Workflows: []durable.Definition{wf}, OnBoot: durable.FailOnBoot, BootReason: "Neustart"}
		w.open(t, o)
		start(t, w, wf, "r", 1)
		synctest.Wait()
		w.reboot(t, o)
		require.Equal(t, "Neustart", w.row("r").Reason)
		_, err := wait(t, w, wf, "r")
		var r *durable.RunError
		require.ErrorAs(t, err, &r)
		require.Equal(t, "Neustart", r.Reason)
		require.True(t, r.Recoverable)
	})
}

// seed puts a run into the store as its history says: events by type, the
// first one being workflow_created.
func seed(t *testing.T, w *world, row store.Run, events ...store.Event) {
	t.Helper()
	now := store.TimeOf(time.Now())
	row.Epoch, row.CreatedAt, row.InitialVersion = int64(now), now, row.Version
	if len(events) == 0 || events[0].Type != store.WorkflowCreated {
		events = append([]store.Event{{Type: store.WorkflowCreated, Data: []byte(`{"seed":"0123456789abcdef"}`)}}, events...)
	}
	var before uint32
	for i := range events {
		events[i].Seq, events[i].At = int64(i+1), now
		events[i].Sum = store.Seal(row.ID, before, &events[i])
		before = events[i].Sum
	}
	errs := w.data.Commit(t.Context(), []store.Change{{RunID: row.ID, Expect: store.Expect{Absent: true}, Create: &row, Events: events}})
	require.NoError(t, errs[0])
}

func TestWaitingRunsKeepTheirStatusAndArePrompted(t *testing.T) {
	for name, owner := range map[string]string{"whose owner left": "", "whose owner died": "ex-gone"} {
		for pname, policy := range map[string]durable.BootPolicy{"resume": durable.ResumeOnBoot, "fail": durable.FailOnBoot} {
			t.Run(name+" "+pname, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					wf, h := holding("w")
					waiting := store.Run{ID: "r", Workflow: "w", Version: "1", Status: store.Waiting, Owner: owner, Code: durable.CodeApproval}
					seed(t, w, waiting,
						store.Event{Type: store.WorkflowCreated, Data: []byte(`{"seed":"0123456789abcdef"}`)},
						store.Event{Type: store.WorkflowStarted},
						store.Event{Type: store.WaitRequested, Key: "earlier", Ordinal: 1, Data: []byte(`{"prompt":"Sure?"}`)},
						store.Event{Type: store.SignalReceived, Key: "earlier", Ordinal: 1},
						store.Event{Type: store.WaitRequested, Key: "approve", Ordinal: 2, Data: []byte(`{"prompt":"Ship o-1?"}`)},
					)
					before, row := w.events("r"), w.row("r")
					for range 2 {
						w.log.clear()
						rep := w.boot(t, durable.Options{Workflows: []durable.Definition{wf}, OnBoot: policy})
						require.Equal(t, []string{"approve: Ship o-1?"}, asked(rep))
						rep.Approvals = nil
						require.Equal(t, durable.Report{}, rep)
						lines := w.log.find("run=r")
						require.Len(t, lines, 1)
						require.Contains(t, lines[0], "INFO")
						require.Contains(t, lines[0], "Ship o-1?")
						require.Len(t, w.log.find("Recovery complete: 0 workflows marked failed, 1 approvals restored."), 1)
						pass(5 * time.Minute)
						require.Equal(t, before, w.events("r"))
						require.Equal(t, row, w.row("r"))
					}
					require.Zero(t, h.count())
				})
			})
		}
	}
}

func TestRecoverItselfLeavesPendingRunsAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(t)
		_, err := durable.Ref[int, int]("unknown").Start(w.ctx(), "r", 1)
		require.NoError(t, err)
		before, row := w.events("r"), w.row("r")
		for _, p := range []durable.BootPolicy{durable.ResumeOnBoot, durable.FailOnBoot, durable.LeaveOnBoot} {
			rep := w.boot(t, durable.Options{OnBoot: p})
			require.Equal(t, "r", rep.Stuck[0].RunID, "nobody has its code")
			rep.Stuck = nil
			require.Zero(t, rep)
			pass(time.Minute)
			require.Equal(t, before, w.events("r"))
			require.Equal(t, row, w.row("r"))
		}
	})
}

func TestNothingOldIsTakenBeforeRecover(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf, h := holding("w")
		w.serve(t, wf)
		start(t, w, wf, "old", 1)
		synctest.Wait()
		w.crash()
		w.expire()
		w.open(t, durable.Options{})
		_, err := durable.Ref[int, int]("w").Start(w.ctx(), "pending", 1)
		require.NoError(t, err)
		w.serve(t, wf)
		w.log.clear()
		pass(5 * time.Minute)
		require.Equal(t, 1, h.count())
		require.Equal(t, store.Pending, w.row("pending").Status)
		require.Equal(t, store.Running, w.row("old").Status)
		reminders := w.log.find("Recover was not called")
		require.Len(t, slices.DeleteFunc(reminders, func(l string) bool { return !strings.Contains(l, w.eng.ID()) }), 1)
		// What is started from now on runs all the same.
		h.open = true
		_, err = run(t, w, wf, "new", 1)
		require.NoError(t, err)
		_, err = w.eng.Recover(w.ctx())
		require.NoError(t, err)
		w.eventually("old", store.Completed)
		w.eventually("pending", store.Completed)
	})
}

func TestEndedRunsAreNeverTouched(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ok := durable.Define("ok", func(context.Context, int) (int, error) { return 1, nil })
		bad := durable.Define("bad", func(context.Context, int) (int, error) { return 0, errStock })
		w.serve(t, ok, bad)
		_, err := run(t, w, ok, "done", 0)
		require.NoError(t, err)
		_, err = run(t, w, bad, "failed", 0)
		require.Error(t, err)
		seed(t, w, store.Run{ID: "cancelled", Workflow: "ok", Version: "1", Status: store.Cancelled}, store.Event{Type: store.WorkflowCancelled})
		var before []any
		all := func() (all []any) {
			for _, id := range []string{"done", "failed", "cancelled"} {
				all = append(all, w.row(id), w.events(id))
			}
			return all
		}
		before = all()
		for _, p := range []durable.BootPolicy{durable.ResumeOnBoot, durable.FailOnBoot, durable.LeaveOnBoot} {
			rep := w.reboot(t, durable.Options{Workflows: []durable.Definition{ok, bad}, OnBoot: p})
			require.Zero(t, rep)
			require.Equal(t, before, all())
		}
	})
}

func TestRunsOfALiveExecutorAreNotTouched(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf, h := holding("w")
		w.boot(t, with(wf))
		owner := w.eng
		start(t, w, wf, "r", 1)
		synctest.Wait()
		before := w.events("r")
		for _, p := range []durable.BootPolicy{durable.ResumeOnBoot, durable.FailOnBoot, durable.LeaveOnBoot} {
			rep := w.boot(t, durable.Options{Workflows: []durable.Definition{wf}, OnBoot: p})
			require.Zero(t, rep)
			pass(5 * time.Minute)
			require.Equal(t, before, w.events("r"))
			require.Equal(t, owner.ID(), w.row("r").Owner)
			require.ErrorIs(t, resume(w.eng, w.ctx(), "r"), durable.ErrNotResumable)
		}
		require.Equal(t, 1, h.count())
	})
}

// One that is corrupt, one nobody knows, one without a history worth the name:
// the others go on, and each is reported with the next step.
func TestBadRunsDoNotStopTheOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf, _ := holding("w")
		unknown, _ := holding("unknown")
		old, _ := holding("w", durable.Version("0"))
		w.serve(t, wf, unknown, old)
		for i := range 5 {
			start(t, w, wf, fmt.Sprint("good-", i), 1)
		}
		start(t, w, wf, "corrupt", 1)
		start(t, w, unknown, "unknown", 1)
		start(t, w, old, "old version", 1)
		synctest.Wait()
		w.crash()
		w.expire()
		rebuild(t, w, "corrupt", false, func(e *store.Event) {
			if e.Type == store.StepCompleted {
				e.Key = "another"
			}
		})
		seed(t, w, store.Run{ID: "no start", Workflow: "w", Version: "1", Status: store.Interrupted}, store.Event{Type: store.WorkflowCreated, Data: []byte(`{"seed":"xx"}`)})
		seed(t, w, store.Run{ID: "torn", Workflow: "w", Version: "1", Status: store.Interrupted}, store.Event{Type: store.WorkflowCreated, Data: []byte(`{"seed":`)})
		rep := w.boot(t, with(wf))
		for i := range 5 {
			_, err := wait(t, w, wf, fmt.Sprint("good-", i))
			require.NoError(t, err)
		}
		stuck := map[string]durable.Stuck{}
		for _, s := range rep.Stuck {
			stuck[s.RunID] = s
		}
		require.Len(t, rep.Stuck, 5)
		require.Equal(t, durable.CodeNotRegistered, stuck["unknown"].Code)
		require.Contains(t, stuck["unknown"].Next, "serves workflow unknown version 1")
		require.Contains(t, stuck["old version"].Reason, "version 0")
		// Those whose damage shows only when they are read are parked, and in this report.
		for _, id := range []string{"corrupt", "no start", "torn"} {
			require.Equal(t, durable.CodeDamaged, stuck[id].Code, id)
			require.NotContains(t, rep.Resumed, id)
			require.Equal(t, durable.CodeDamaged, w.eventually(id, store.Interrupted).Code, id)
		}
		rep = w.boot(t, with(wf))
		var codes []string
		for _, s := range rep.Stuck {
			codes = append(codes, s.RunID+": "+s.Code)
			require.NotEmpty(t, s.Next)
			require.NotEmpty(t, s.Reason)
		}
		slices.Sort(codes)
		require.Equal(t, []string{"corrupt: damaged", "no start: damaged", "old version: not_registered", "torn: damaged", "unknown: not_registered"}, codes)
		// The program that knows them takes them by itself.
		w.boot(t, with(wf, unknown, old))
		w.eventually("unknown", store.Completed)
		w.eventually("old version", store.Completed)
	})
}

// Without its code nothing can be known of a run, not even its policy.
func TestTheEnginesPolicyDoesNotJudgeWorkflowsOfOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf, _ := holding("w")
		w.serve(t, wf)
		start(t, w, wf, "r", 1)
		synctest.Wait()
		rep := w.reboot(t, durable.Options{OnBoot: durable.FailOnBoot})
		require.Empty(t, rep.Failed)
		require.Len(t, rep.Stuck, 1)
		require.Equal(t, store.Running, w.row("r").Status, "a program without workflows leaves it to others")
		other, _ := holding("other")
		rep = w.reboot(t, durable.Options{OnBoot: durable.FailOnBoot, Workflows: []durable.Definition{other}})
		require.Empty(t, rep.Failed)
		require.Len(t, rep.Stuck, 1)
		require.Equal(t, store.Interrupted, w.row("r").Status, "nobody executes it")
		w.boot(t, with(wf))
		_, err := wait(t, w, wf, "r")
		require.NoError(t, err)
	})
}

// An executor that died is noticed by the others, without anybody's Recover.
func TestALiveExecutorTakesOverFromADeadOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf, h := holding("w")
		w.boot(t, with(wf))
		heir := w.eng
		w.boot(t, with(wf))
		start(t, w, wf, "r", 1)
		synctest.Wait()
		w.crash()
		died := time.Now()
		w.eng = heir
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 2, out)
		require.LessOrEqual(t, time.Since(died), durable.DefaultLease+durable.DefaultLease/3+time.Second)
		require.Equal(t, 2, h.count())
	})
}

func TestARunThatKillsItsProcessIsQuarantinedAndBystandersAreNot(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var kills atomic.Int32
		killer := durable.Define("killer", func(ctx context.Context, _ int) (int, error) {
			return 0, durable.Do(ctx, "die", func(ctx context.Context) error {
				kills.Add(1)
				time.Sleep(time.Second)
				w.disk.cut()
				<-ctx.Done()
				return ctx.Err()
			})
		})
		bystander := durable.Define("bystander", func(ctx context.Context, _ int) (int, error) {
			return 1, durable.Do(ctx, "long", func(ctx context.Context) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(20 * time.Second):
					return nil
				}
			})
		})
		o := with(killer, bystander)
		w.open(t, o)
		for i := range 5 {
			start(t, w, bystander, fmt.Sprint("b", i), 0)
			if i == 2 {
				start(t, w, killer, "k", 0)
			}
		}
		boots := 0
		for w.row("k").Status != store.Failed {
			boots++
			require.Less(t, boots, 10, "the killer is never set aside")
			pass(10 * time.Second) // the bystanders record nothing in this time
			w.reboot(t, o)
			pass(5 * time.Minute)
		}
		// The first one is on nobody's account: that a body had begun was not on
		// record.
		require.EqualValues(t, 4, kills.Load())
		row := w.row("k")
		require.Equal(t, durable.CodeQuarantined, row.Code)
		require.True(t, row.Recoverable)
		require.Contains(t, row.Reason, "its process ended 3 times without a word while attempt 1 of step die was under way")
		require.Contains(t, w.log.String(), "WARN durable: run quarantined run=k")
		for i := range 5 {
			require.Equal(t, store.Completed, w.eventually(fmt.Sprint("b", i), store.Completed).Status)
		}
		// A person may let it go on: its count begins anew.
		require.NoError(t, resume(w.eng, w.ctx(), "k"))
		pass(10 * time.Second)
		require.EqualValues(t, 5, kills.Load())
		rep := w.reboot(t, o)
		require.Equal(t, []string{"k"}, rep.Resumed)
	})
}

func TestACheckpointClearsTheStrikes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		bodies := 0
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			for i := range n {
				if err := durable.Do(ctx, fmt.Sprint("s", i), func(ctx context.Context) error {
					bodies++
					if bodies%3 != 0 { // each step kills its process twice, then succeeds
						time.Sleep(time.Second)
						w.disk.cut()
						<-ctx.Done()
						return ctx.Err()
					}
					return nil
				}); err != nil {
					return 0, err
				}
			}
			return n, nil
		})
		w.open(t, with(wf))
		start(t, w, wf, "r", 4)
		for range 8 {
			pass(5 * time.Second)
			rep := w.reboot(t, with(wf))
			require.Empty(t, rep.Quarantine)
		}
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 4, out)
	})
}

// A deployment is no strike, however often it happens.
func TestGracefulStopsAreNoStrikes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return 0, durable.Do(ctx, "s", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		for range 10 {
			synctest.Wait()
			require.NoError(t, w.eng.Close())
			rep := w.boot(t, with(wf))
			require.Empty(t, rep.Quarantine)
			require.Empty(t, rep.Suspects)
		}
		require.Zero(t, w.row("r").Strikes)
	})
}

func TestRecoverContinuesManyRunsOldestFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n = 300 // more than a page and several batches
		var h hold
		many := durable.Define("many", func(ctx context.Context, in int) (int, error) {
			return in, durable.Do(ctx, "s", h.body)
		})
		w.serve(t, many)
		for i := range n {
			start(t, w, many, fmt.Sprintf("r%03d", i), i)
			synctest.Wait()
		}
		rep := w.reboot(t, with(many))
		require.Len(t, rep.Resumed, n)
		require.True(t, slices.IsSorted(rep.Resumed), "oldest first")
		for i := range n {
			out, err := wait(t, w, many, fmt.Sprintf("r%03d", i))
			require.NoError(t, err)
			require.Equal(t, i, out)
		}
	})
}

func TestRecoverSaysThatTheStoreCouldNotBeReadAndMayBeCalledAgain(t *testing.T) {
	for _, broken := range []string{"list", "executors", "claim"} {
		t.Run(broken, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf, _ := holding("w")
				w.serve(t, wf)
				start(t, w, wf, "r", 1)
				synctest.Wait()
				w.crash()
				w.expire()
				w.serve(t, wf)
				w.disk.tamperCalls(func(call string, forward func() error) error {
					if call == broken {
						return errDisk
					}
					return forward()
				})
				rep, err := w.eng.Recover(w.ctx())
				if broken == "claim" {
					require.NoError(t, err)
					require.Len(t, rep.Stuck, 1)
					require.Contains(t, rep.Stuck[0].Reason, "disk on fire")
				} else {
					require.ErrorIs(t, err, errDisk)
				}
				w.disk.tamperCalls(nil)
				_, err = w.eng.Recover(w.ctx())
				require.NoError(t, err)
				_, err = wait(t, w, wf, "r")
				require.NoError(t, err)
			})
		})
	}
}

func TestRunsThatNobodyAliveHasTheCodeOfAreReported(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.boot(t, durable.Options{Workflows: []durable.Definition{approval}})
		_, err := approval.Start(w.ctx(), "waits", "x")
		require.NoError(t, err)
		_, err = durable.Ref[int, int]("nowhere").Start(w.ctx(), "pending", 1)
		require.NoError(t, err)
		w.eventually("waits", store.Waiting)

		other := w.boot(t, durable.Options{})
		require.Len(t, other.Stuck, 1, "somebody alive serves the one that waits")
		require.Equal(t, "pending", other.Stuck[0].RunID)
		require.Equal(t, durable.CodeNotRegistered, other.Stuck[0].Code)
		require.Contains(t, other.Stuck[0].Next, "serves workflow nowhere")
		require.Equal(t, store.Pending, w.row("pending").Status)
	})
}
