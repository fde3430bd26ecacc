package durable_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/runfile"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// rewritten returns a file as its writer would have written it, whatever is in it: the sum at
// its end is right.
func rewritten(t require.TestingT, f *runfile.File) []byte {
	var b bytes.Buffer
	w, err := runfile.NewWriter(&b, &f.Run)
	require.NoError(t, err)
	for i := range f.Branches {
		require.NoError(t, w.Branch(&f.Branches[i]))
	}
	for i := range f.Inbox {
		require.NoError(t, w.Message(&f.Inbox[i]))
	}
	for i := range f.Events {
		require.NoError(t, w.Event(&f.Events[i]))
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// resealed chains the sums of the events anew, as somebody would who writes a file by hand.
func resealed(f *runfile.File) {
	var sum uint32
	for i := range f.Events {
		f.Events[i].Sum = store.Seal(f.Run.ID, sum, &f.Events[i])
		sum = f.Events[i].Sum
	}
}

// nasty are values of a kind that no program writes.
func nasty(v reflect.Value) (all []reflect.Value) {
	add := func(x any) { all = append(all, reflect.ValueOf(x).Convert(v.Type())) }
	switch v.Kind() {
	case reflect.String:
		for _, s := range []string{"", "a\nb", "a\x00b", strings.Repeat("x", 2000), "../../x", "r", "items[99999999999999999999]/a", "~undo/x"} {
			add(s)
		}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32:
		for _, n := range []int64{0, 1, 2, 7, 1<<31 - 1} {
			add(n)
		}
		if v.Kind() != reflect.Uint32 {
			add(int64(-1))
			if v.Kind() != reflect.Int32 {
				add(int64(1) << 62)
				add(int64(-1) << 62)
			}
		}
	case reflect.Bool:
		add(!v.Bool())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			add([]byte(nil))
			add([]byte("\x00\xff"))
			add([]byte(`{"a":` + strings.Repeat("[", 20_000)))
			add([]byte(strings.Repeat(`{"cut":`, 5000)))
			add([]byte(`{"fork":{"from":"r","seeds":[{"seed":"zz","until":-1}]},"generation":2147483647,"items":9999999999}`))
			add([]byte(`{"items":99999999,"child":"r","message":9,"pending":[1,1,-5],"reset":["items[0]","x","~undo"]}`))
		}
	case reflect.Map:
		all = append(all, reflect.Zero(v.Type()), reflect.ValueOf(map[string]string{"": "", "a\nb": strings.Repeat("y", 100_000)}))
	case reflect.Array:
		a := reflect.New(v.Type()).Elem()
		a.Index(0).SetUint(9)
		all = append(all, a)
	}
	return all
}

// A file that somebody has crafted is refused, with nothing left in the store, or makes a run
// that Verify, Export, the plan of a resume and its execution can cope with. Whatever its
// fields say, its sums are right.
func TestACraftedFileIsRefusedWholeOrMakesARunThatCanBeLookedAt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, more int) (string, error) {
			if more > 1 {
				return "", durable.Continue(ctx, more-1)
			}
			_, err := durable.Map(ctx, "items", []int{1, 2}, durable.MapOptions{Concurrency: 1}, func(ctx context.Context, _ int) (int, error) {
				return durable.Step(ctx, "a", func(context.Context) (int, error) { return 1, nil })
			})
			if err != nil {
				return "", err
			}
			if _, err := durable.Await[string](ctx, "go"); err != nil {
				return "", err
			}
			return "", durable.Sleep(ctx, time.Hour)
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 2)
		synctest.Wait()
		require.NoError(t, w.eng.Signal(w.ctx(), "r", "go", "x"))
		synctest.Wait()
		_, err := operate.On(w.eng).Jump(w.ctx(), "r", seqOf(t, w, "r", "items[0]"), operate.JumpOptions{})
		require.NoError(t, err)
		synctest.Wait()
		file := export(t, w, "r")
		parse := func() *runfile.File {
			f, err := runfile.Read(bytes.NewReader(file), 1<<20)
			require.NoError(t, err)
			return f
		}
		require.NotEmpty(t, parse().Branches)
		require.NotEmpty(t, parse().Inbox)

		crafted := map[string][]byte{}
		craft := func(name string, change func(f *runfile.File)) {
			for _, reseal := range []bool{true, false} {
				if !reseal && strings.HasPrefix(name, "event") {
					continue // the sums tell
				}
				f := parse()
				if change(f); reseal {
					resealed(f)
				}
				crafted[fmt.Sprintf("%s resealed=%v", name, reseal)] = rewritten(t, f)
			}
		}
		fields := func(name string, of func(f *runfile.File) any) {
			typ := reflect.TypeOf(of(parse())).Elem()
			for i := range typ.NumField() {
				if typ.Field(i).Name == "Last" || typ.Field(i).Name == "To" || typ.Field(i).Name == "IfLive" || typ.Field(i).Name == "Epoch" {
					continue // not in a file
				}
				for n, v := range nasty(reflect.ValueOf(of(parse())).Elem().Field(i)) {
					craft(fmt.Sprintf("%s.%s %d", name, typ.Field(i).Name, n), func(f *runfile.File) { reflect.ValueOf(of(f)).Elem().Field(i).Set(v) })
				}
			}
		}
		fields("run", func(f *runfile.File) any { return &f.Run })
		for i := range parse().Branches {
			fields(fmt.Sprint("branch ", i), func(f *runfile.File) any { return &f.Branches[i] })
			craft(fmt.Sprint("without branch ", i), func(f *runfile.File) { f.Branches = slices.Delete(f.Branches, i, i+1) })
			craft(fmt.Sprint("twice branch ", i), func(f *runfile.File) { f.Branches = append(f.Branches, f.Branches[i]) })
		}
		for i := range parse().Inbox {
			fields(fmt.Sprint("message ", i), func(f *runfile.File) any { return &f.Inbox[i] })
			craft(fmt.Sprint("twice message ", i), func(f *runfile.File) { f.Inbox = append(f.Inbox, f.Inbox[i]) })
		}
		for i := range parse().Events {
			craft(fmt.Sprint("without event ", i), func(f *runfile.File) { f.Events = slices.Delete(f.Events, i, i+1) })
			craft(fmt.Sprint("cut at event ", i), func(f *runfile.File) { f.Events = f.Events[:i] })
			if i%6 != 2 {
				continue // enough of each kind: every file is a store and a process
			}
			fields(fmt.Sprint("event ", i), func(f *runfile.File) any { return &f.Events[i] })
			craft(fmt.Sprint("twice event ", i), func(f *runfile.File) { f.Events = slices.Insert(f.Events, i, f.Events[i]) })
		}
		craft("cyclic branches", func(f *runfile.File) {
			f.Branches = append(f.Branches, store.Branch{N: 8, Parent: 9, Cutoff: 2}, store.Branch{N: 9, Parent: 8, Cutoff: 2})
			f.Run.Branch = 9
		})
		craft("many branches", func(f *runfile.File) {
			for n := range int32(3000) {
				f.Branches = append(f.Branches, store.Branch{N: 100 + n, Parent: 99 + n, Cutoff: 2})
			}
		})

		taken := 0
		for name, bad := range crafted {
			place := newWorld(t)
			place.boot(t, with(wf))
			_, err := imports(place, bad, operate.ImportOptions{})
			page, lerr := place.data.List(context.Background(), store.Filter{})
			require.NoError(t, lerr)
			switch {
			case err != nil && len(page.Runs) > 0:
				t.Errorf("%s: a run is left behind after %v", name, err)
			case err != nil:
				if !errors.Is(err, operate.ErrBadFile) && !errors.Is(err, store.ErrTooLarge) && !errors.Is(err, durable.ErrInvalid) {
					t.Errorf("%s: %v", name, err)
				}
			default:
				taken++
				id := page.Runs[0].ID
				if v := verify(t, place, id); !v.Sound() {
					t.Errorf("%s: %v", name, v.Findings)
				}
				if err := operate.On(place.eng).Export(context.Background(), id, &bytes.Buffer{}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				_, _ = operate.On(place.eng).Resume(place.ctx(), id, operate.ResumeOptions{DryRun: true})
				_, _ = operate.On(place.eng).Resume(place.ctx(), id, operate.ResumeOptions{})
				synctest.Wait()
			}
			place.crash()
		}
		t.Logf("%d crafted files, %d of them make a run", len(crafted), taken)
	})
}
