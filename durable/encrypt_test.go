package durable_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// key makes a key that is recognised wherever it should not be.
func key(id string) []byte { return bytes.Repeat([]byte(id), durable.KeySize)[:durable.KeySize] }

func keysOf(current string, ids ...string) durable.Keys {
	keys := map[string][]byte{}
	for _, id := range append(ids, current) {
		if id != "" {
			keys[id] = key(id)
		}
	}
	return durable.StaticKeys(current, keys)
}

func encrypted(k durable.Keys, defs ...durable.Definition) durable.Options {
	o := with(defs...)
	o.Encrypt = k
	return o
}

// story of what payloads are kept with: "step_completed value k1".
func keptWith(t *testing.T, w *world, id string) map[string]string {
	t.Helper()
	kept := map[string]string{}
	for _, ev := range w.events(id) {
		if len(ev.Payload) == 0 {
			continue
		}
		p, err := operate.On(w.eng).Payload(id, ev)
		require.NoError(t, err)
		kept[strings.TrimSpace(string(ev.Type)+" "+ev.Key)] = strings.TrimSpace(p.Compression + " " + p.KeyID)
	}
	return kept
}

const canary = "the-secret-of-Ada"

// What a value says is nowhere in the store, whatever place it was in, and no
// key is anywhere.
func TestNoValueIsInTheStoreInClearAndNoKeyAnywhere(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		secret := func(place int) orderV1 { return orderV1{fmt.Sprintf("%s L%d", canary, place)} }
		x := newEverywhere(&h, secret)
		keys := keysOf("k1")
		w.boot(t, encrypted(keys, x.defs()...))
		x.begin(t, w)
		w.reboot(t, encrypted(keys, x.defs()...))
		for place, v := range x.values(t, w) {
			require.Equal(t, secret(place), v, places[place])
		}
		payloads := 0
		for _, id := range []string{"r", "r/child"} {
			h, err := w.data.Load(context.Background(), id, store.Cursor{All: true})
			require.NoError(t, err)
			var all bytes.Buffer
			require.NoError(t, json.NewEncoder(&all).Encode(h.Run))
			for ev, err := range h.Events {
				require.NoError(t, err)
				all.Write(ev.Data)
				all.Write(ev.Payload)
				if len(ev.Payload) > 0 {
					payloads++
				}
			}
			for _, m := range h.Inbox {
				all.Write(m.Data)
				all.Write(m.Payload)
			}
			require.NotContains(t, all.String(), canary)
			require.NotContains(t, all.String(), base64.StdEncoding.EncodeToString([]byte(canary))[:16])
			requireNoKey(t, "k1", all.String())
		}
		require.Equal(t, 16+2, payloads, "the test has looked at all of them")
		require.NotContains(t, w.log.String(), canary)
		requireNoKey(t, "k1", w.log.String())
	})
}

func requireNoKey(t *testing.T, id, text string) {
	t.Helper()
	k := key(id)
	for _, form := range []string{string(k), hex.EncodeToString(k), base64.StdEncoding.EncodeToString(k), fmt.Sprint(k)} {
		require.NotContains(t, text, form)
	}
}

func TestKeysArePrintedByTheirIds(t *testing.T) {
	keys := keysOf("k2", "k1")
	o := durable.Options{Encrypt: keys}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "keys", keys, "options", o)
	for _, text := range []string{
		fmt.Sprint(keys), fmt.Sprintf("%v %+v %#v %s %x %d %q", keys, keys, keys, keys, keys, keys, keys),
		fmt.Sprintf("%v %+v %#v", o, o, o), log.String(),
	} {
		requireNoKey(t, "k1", text)
		requireNoKey(t, "k2", text)
		require.Contains(t, text, "k1")
	}
	b, err := json.Marshal(keys)
	require.NoError(t, err)
	requireNoKey(t, "k1", string(b))
}

// A run whose values are encrypted and compressed ends, killed anywhere, as if it
// had not been.
func TestAnEncryptedRunKilledAtAnyWriteEndsAsIfItHadNotBeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := durable.Options{Encrypt: keysOf("k1"), CompressAbove: 1}
		define := func(j *journal) []durable.Definition {
			long := strings.Repeat("text ", 40)
			child := durable.Define("child", func(_ context.Context, s string) (string, error) { return s + "!", nil })
			main := durable.Define("main", func(ctx context.Context, in int) (string, error) {
				v, err := durable.Seek(ctx, "seek", durable.Policy{MaxAttempts: 3, Initial: time.Second}, func(ctx context.Context) (string, error) {
					a := j.add(ctx)
					before := long
					if len(a.Failures) > 0 {
						if _, err := a.Failures[0].Output(&before); err != nil {
							return "", err
						}
					}
					if p, ok, err := durable.Progress[string](ctx); err != nil || ok && !strings.HasPrefix(before, p) {
						return "", durable.Permanent(fmt.Errorf("progress %q, %w", p, err))
					}
					if err := durable.SaveProgress(ctx, before); err != nil {
						return "", err
					}
					return before + fmt.Sprint(a.Number), nil
				}, func(s string) error {
					if len(s) < len(long)+2 {
						return errors.New("too short")
					}
					return nil
				})
				if err != nil {
					return "", err
				}
				relaxed, err := durable.Step(ctx, "pure", func(ctx context.Context) (string, error) { return long, nil }, durable.Relaxed())
				if err != nil {
					return "", err
				}
				out, err := durable.Map(ctx, "items", []string{v, relaxed}, durable.MapOptions{}, func(ctx context.Context, s string) (string, error) { return s[len(s)-3:], nil })
				if err != nil {
					return "", err
				}
				c, err := child.Run(ctx, durable.AutoID, strings.Join(out, "+"))
				return c, err
			})
			return []durable.Definition{main, child}
		}
		want, _, writes := livesOf(t, o, define, nil)
		require.Equal(t, " 12+xt !, <nil>", want)
		require.Greater(t, writes, 10)
		for at := 1; at <= writes; at++ {
			for _, after := range []bool{false, true} {
				got, _, _ := livesOf(t, o, define, []death{{at, after}})
				require.Equal(t, want, got, "killed at write %d, after=%v", at, after)
			}
		}
	})
}

// threeSteps records three values and is then held, to be killed and tampered
// with.
func threeSteps(h *hold) *durable.Workflow[string, string] {
	return durable.Define("w", func(ctx context.Context, in string) (string, error) {
		out := in
		for range 3 {
			v, err := durable.Retry(ctx, "value", durable.Policy{MaxAttempts: 2, Initial: 1}, func(ctx context.Context) (string, error) {
				return fmt.Sprintf("%s-%d", durable.Attempt(ctx).Key, durable.Attempt(ctx).Number), nil
			})
			if err != nil {
				return "", err
			}
			out += " " + v
		}
		return out, durable.Do(ctx, "hold", h.body)
	})
}

const threeDone = "in value-1 value#2-1 value#3-1"

// A payload that somebody put in the place of another one is sound in itself: its
// checksum and that of the event were made anew.
func TestAPayloadMovedToAnotherPlaceIsNotBelieved(t *testing.T) {
	for name, move := range map[string]func(e *store.Event, from map[string][]byte){
		"to another step": func(e *store.Event, from map[string][]byte) {
			if e.Key == "value#2" {
				e.Payload = from["r value"]
			}
		},
		"from another run": func(e *store.Event, from map[string][]byte) {
			if e.Key == "value" {
				e.Payload = from["other value"]
			}
		},
		"to another attempt": func(e *store.Event, _ map[string][]byte) {
			if e.Key == "value#3" {
				e.Attempt = 2
			}
		},
		"to another kind of event": func(e *store.Event, from map[string][]byte) {
			if e.Type == store.WorkflowCreated {
				e.Payload = from["r value"]
			}
		},
		"with another type in its header": func(e *store.Event, _ map[string][]byte) {
			if e.Key == "value" {
				e.Payload = reheader(e.Payload, "string@1", "main.Text@1")
			}
		},
		"under another key id": func(e *store.Event, _ map[string][]byte) {
			if e.Key == "value" {
				e.Payload = reheader(e.Payload, " k1@", " k2@")
			}
		},
		"cut short": func(e *store.Event, _ map[string][]byte) {
			if e.Key == "value" {
				e.Payload = reheader(e.Payload[:len(e.Payload)-20], " k1@", " k1@")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var h hold
				wf := threeSteps(&h)
				o := encrypted(keysOf("k1", "k2"), wf)
				w.boot(t, o)
				start(t, w, wf, "r", "in")
				start(t, w, wf, "other", "in")
				synctest.Wait()
				w.crash()
				w.expire()
				from := map[string][]byte{}
				for _, id := range []string{"r", "other"} {
					for _, ev := range w.events(id) {
						from[strings.TrimSpace(id+" "+ev.Key)] = ev.Payload
					}
				}
				rebuild(t, w, "r", true, func(e *store.Event) { move(e, from) })
				w.boot(t, o)
				row := w.eventually("r", store.Interrupted)
				require.Equal(t, durable.CodeUndecodable, row.Code)
				_, err := wait(t, w, wf, "r")
				want := durable.ErrDecrypt
				if name == "under another key id" {
					want = durable.ErrWrongKey
				}
				require.ErrorIs(t, err, want)
				requireNoKey(t, "k1", err.Error())
				// The other run is none the worse.
				out, err := wait(t, w, wf, "other")
				require.NoError(t, err)
				require.Equal(t, threeDone, out)
			})
		})
	}
}

// Everything that says where a payload stands is part of what encrypts it.
func TestAPayloadIsBoundToItsPlace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := threeSteps(&hold{open: true})
		w.boot(t, encrypted(keysOf("k1"), wf))
		_, err := run(t, w, wf, "r", "in")
		require.NoError(t, err)
		for _, ev := range w.events("r") {
			if len(ev.Payload) == 0 {
				continue
			}
			_, err := operate.On(w.eng).Payload("r", ev)
			require.NoError(t, err)
			_, err = operate.On(w.eng).Payload("other", ev)
			require.ErrorIs(t, err, durable.ErrDecrypt)
			for name, change := range map[string]func(e *store.Event){
				"key": func(e *store.Event) { e.Key += "x" }, "branch": func(e *store.Event) { e.Branch++ },
				"attempt": func(e *store.Event) { e.Attempt++ }, "type": func(e *store.Event) { e.Type = store.ProgressSaved },
			} {
				other := ev
				change(&other)
				_, err = operate.On(w.eng).Payload("r", other)
				require.ErrorIs(t, err, durable.ErrDecrypt, name)
			}
		}
	})
}

// One history holds what was written in clear, compressed, encrypted, with
// another key, and in clear again.
func TestAHistoryOfAllKindsReadsBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lives := 6
		stage := make(chan struct{}, lives)
		text := strings.Repeat("compressible ", 100)
		wf := durable.Define("w", func(ctx context.Context, in string) (int, error) {
			n := 0
			for i := range lives {
				v, err := durable.Step(ctx, "value", func(ctx context.Context) (string, error) {
					select {
					case <-stage:
						return text + fmt.Sprint(i), nil
					case <-ctx.Done():
						return "", context.Cause(ctx)
					}
				})
				if err != nil {
					return 0, err
				}
				if v != text+fmt.Sprint(i) {
					return 0, durable.Permanent(fmt.Errorf("value %d is %q", i, v))
				}
				n++
			}
			return n, nil
		})
		for i, o := range []durable.Options{
			with(), {CompressAbove: 100}, {Encrypt: keysOf("k1"), CompressAbove: -1}, {Encrypt: keysOf("k2", "k1"), CompressAbove: 100},
			{Encrypt: keysOf("", "k2", "k1"), CompressAbove: -1}, {Encrypt: keysOf("k3", "k2", "k1")},
		} {
			o.Workflows = []durable.Definition{wf}
			if i == 0 {
				w.boot(t, o)
				start(t, w, wf, "r", text)
			} else {
				w.reboot(t, o)
			}
			synctest.Wait()
			stage <- struct{}{}
			synctest.Wait()
		}
		n, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, lives, n)
		kept := keptWith(t, w, "r")
		require.Equal(t, map[string]string{
			"workflow_created": "", "step_completed value": "", "step_completed value#2": "zstd", "step_completed value#3": "k1",
			"step_completed value#4": "zstd k2", "step_completed value#5": "", "step_completed value#6": "k3", "workflow_completed": "k3",
		}, kept)
	})
}

// Every encryption differs, and the starts are the same all the same.
func TestAStartIsRecognisedThoughItsInputIsEncrypted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		wf := threeSteps(&h)
		w.boot(t, encrypted(keysOf("k1"), wf))
		start(t, w, wf, "r", "in")
		synctest.Wait()
		o := encrypted(keysOf("k2", "k1"), wf)
		o.CompressAbove = 1
		o.Codec = hexCodec{}
		w.reboot(t, o)
		again, err := wf.Start(w.ctx(), "r", "in")
		require.NoError(t, err)
		out, err := again.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, threeDone, out)
		_, err = wf.Start(w.ctx(), "r", "another")
		require.ErrorIs(t, err, durable.ErrConflict)
	})
}

// A signal is for one run, and counts once.
func TestASignalMovedToAnotherReceiverIsNotBelieved(t *testing.T) {
	for name, move := range map[string]func(m *store.Message){
		"another run": func(m *store.Message) { m.To = "b" },
		"another id":  func(m *store.Message) { m.To, m.ID = "a", "id2" },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
					if s, err := durable.Await[string](ctx, "name"); err != nil {
						return s, err
					}
					return durable.Await[string](ctx, "name")
				})
				w.boot(t, encrypted(keysOf("k1"), wf))
				start(t, w, wf, "a", 0)
				start(t, w, wf, "b", 0)
				require.NoError(t, w.eng.Signal(w.ctx(), "a", "name", "for a", durable.SignalID("id")))
				synctest.Wait()
				h, err := w.data.Load(context.Background(), "a", store.Cursor{NoEvents: true})
				require.NoError(t, err)
				m := h.Inbox[0]
				move(&m)
				// Its sum would tell. Who moves a message leaves that out.
				m.Data = nil
				require.NoError(t, w.data.Commit(context.Background(), []store.Change{{Send: []store.Message{m}}})[0])
				row := w.eventually(m.To, store.Interrupted)
				require.Equal(t, durable.CodeUndecodable, row.Code)
				require.Contains(t, row.Reason, "moved here from another place")
			})
		})
	}
}

// What cannot be decrypted at the moment is no answer of the sender, nor the
// child's failure: both stay where they are.
func TestMailThatCannotBeDecryptedParksTheReceiverAndIsKept(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		waiting := durable.Define("w", func(ctx context.Context, _ int) (string, error) { return durable.Await[string](ctx, "s") })
		child := durable.Define("child", func(ctx context.Context, _ int) (string, error) { return durable.Await[string](ctx, "go") })
		parent := durable.Define("parent", func(ctx context.Context, _ int) (string, error) {
			return durable.Ref[int, string]("child").Run(ctx, "c", 0)
		})
		w.boot(t, with(waiting, parent))
		start(t, w, waiting, "r", 0)
		start(t, w, parent, "p", 0)
		synctest.Wait()
		old := w.eng
		w.boot(t, encrypted(keysOf("k1"), child))
		synctest.Wait()
		require.NoError(t, w.eng.Signal(w.ctx(), "r", "s", "hello"))
		require.NoError(t, w.eng.Signal(w.ctx(), "c", "go", "on"))
		for _, id := range []string{"r", "p"} {
			require.Equal(t, durable.CodeUndecodable, w.eventually(id, store.Interrupted).Code)
			require.Contains(t, w.row(id).Reason, `encrypted with key "k1"`)
		}
		require.NoError(t, old.Close())
		w.boot(t, encrypted(keysOf("k1"), waiting, parent, child))
		goesOn(t, w, "r")
		goesOn(t, w, "p")
		for id, want := range map[string]string{"r": "hello", "p": "on"} {
			h, err := waiting.Handle(w.ctx(), id)
			require.NoError(t, err)
			got, err := h.Wait(w.ctx())
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	})
}
