package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A type as it was in three releases of a program.
type (
	orderV1 struct{ Name string }          // "Ada Lovelace 7"
	orderV2 struct{ First, Last string }   // the name was split
	orderV3 struct{ Person person }        // and became a type of its own
	person  struct{ Given, Family string } //
	orderV4 struct {
		Buyer person
		Items []int
	} //nolint
)

func splitName(o orderV1) (orderV2, error) {
	first, last, ok := strings.Cut(o.Name, " ")
	if !ok {
		return orderV2{}, fmt.Errorf("%q has no last name", o.Name)
	}
	return orderV2{first, last}, nil
}

func makePerson(o orderV2) (orderV3, error) { return orderV3{person{o.First, o.Last}}, nil }

func addItems(o orderV3) (orderV4, error) { return orderV4{o.Person, []int{1}}, nil }

// The registrations of each release.
var (
	wasV1   = durable.Was("durable_test.orderV1")
	release = map[int]durable.TypeDef{
		1: durable.Type[orderV1]("order", 1),
		2: durable.Type[orderV2]("order", 2, durable.From(1, splitName), wasV1),
		3: durable.Type[orderV3]("order", 3, durable.From(2, makePerson), durable.From(1, splitName), wasV1),
		4: durable.Type[orderV4]("order", 4, durable.From(1, splitName), durable.From(2, makePerson), durable.From(3, addItems), wasV1),
	}
)

func v1Of(place int) orderV1 { return orderV1{fmt.Sprintf("Ada L%d", place)} }
func v2Of(place int) orderV2 { return orderV2{"Ada", fmt.Sprintf("L%d", place)} }
func v4Of(place int) orderV4 {
	return orderV4{person{"Ada", fmt.Sprintf("L%d", place)}, []int{1}}
}

// typed is Options for a program of one release; 0 is the one before the type
// was registered.
func typed(version int, defs ...durable.Definition) durable.Options {
	o := with(defs...)
	if version > 0 {
		o.Types = []durable.TypeDef{release[version]}
	}
	return o
}

// killed runs a program of the first type until it is held, and kills it.
func killed[T any](t *testing.T, w *world, h *hold, o durable.Options, value func(int) T) {
	t.Helper()
	x := newEverywhere(h, value)
	o.Workflows = x.defs()
	w.boot(t, o)
	x.begin(t, w)
	w.crash()
	w.expire()
}

func TestEarlierVersionsAreRaisedWhereverAValueIsRead(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, w *world, h *hold){
		"not registered": func(t *testing.T, w *world, h *hold) { killed(t, w, h, typed(0), v1Of) },
		"version 1":      func(t *testing.T, w *world, h *hold) { killed(t, w, h, typed(1), v1Of) },
		"version 2":      func(t *testing.T, w *world, h *hold) { killed(t, w, h, typed(2), v2Of) },
		"version 4":      func(t *testing.T, w *world, h *hold) { killed(t, w, h, typed(4), v4Of) },
		"another codec": func(t *testing.T, w *world, h *hold) {
			o := typed(2)
			o.Codec = hexCodec{}
			killed(t, w, h, o, v2Of)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var h hold
				before(t, w, &h)
				x := newEverywhere(&h, v4Of)
				o := typed(4, x.defs()...)
				o.Codec = hexCodec{}
				w.boot(t, o)
				for place, v := range x.values(t, w) {
					require.Equal(t, v4Of(place), v, places[place])
				}
			})
		})
	}
}

// hexCodec is a codec of somebody's own.
type hexCodec struct{}

func (hexCodec) Name() string { return "hex" }

func (hexCodec) Encode(v any) ([]byte, error) {
	b, err := durable.JSON().Encode(v)
	return fmt.Appendf(nil, "%x", b), err
}

func (hexCodec) Decode(data []byte, v any) error {
	var b []byte
	if _, err := fmt.Sscanf(string(data), "%x", &b); err != nil {
		return err
	}
	return durable.JSON().Decode(b, v)
}

func TestAValueFromALaterVersionParksTheRunUntilALaterProgramResumesIt(t *testing.T) {
	for _, version := range []int{0, 1} {
		t.Run(fmt.Sprintf("read with version %d", version), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var h hold
				killed(t, w, &h, typed(4), v4Of)
				old := newEverywhere(&h, v1Of)
				w.boot(t, typed(version, old.defs()...))
				row := w.eventually("r", store.Interrupted)
				require.Equal(t, durable.CodeUndecodable, row.Code)
				require.Contains(t, row.Reason, "version 4 of order, and version 1 is the newest this program knows")
				_, err := wait(t, w, old.wf, "r")
				var future *durable.FutureVersionError
				require.ErrorAs(t, err, &future)
				require.Equal(t, durable.FutureVersionError{Type: "order", Have: 4, Know: 1}, *future)

				x := newEverywhere(&h, v4Of)
				w.crash()
				w.expire()
				w.boot(t, typed(4, x.defs()...))
				goesOn(t, w, "r")
				for place, v := range x.values(t, w) {
					require.Equal(t, v4Of(place), v, places[place])
				}
			})
		})
	}
}

// A signal is no fault of the run that gets it: what its program cannot read yet
// parks it, and the signal waits for the program that can.
func TestASignalFromALaterVersionParksItsReceiverAndIsKept(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		old := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			o, err := durable.Await[orderV2](ctx, "order")
			return o.Last, err
		})
		w.boot(t, typed(2, old))
		start(t, w, old, "r", 0)
		receiver := w.eng
		sender := w.open(t, typed(4))
		require.NoError(t, sender.Signal(w.ctx(), "r", "order", v4Of(7)))
		row := w.eventually("r", store.Interrupted)
		require.Equal(t, durable.CodeUndecodable, row.Code)
		require.Contains(t, row.Reason, "version 4 of order")
		require.NotContains(t, w.story("r"), "signal_received order")
		require.NoError(t, receiver.Close())

		now := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			o, err := durable.Await[orderV4](ctx, "order")
			return o.Buyer.Family, err
		})
		w.boot(t, typed(4, now))
		goesOn(t, w, "r")
		got, err := wait(t, w, now, "r")
		require.NoError(t, err)
		require.Equal(t, "L7", got)
	})
}

func TestAnUpcasterThatFailsParksTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		up   func(orderV1) (orderV2, error)
		says string
	}{
		"error": {func(orderV1) (orderV2, error) { return orderV2{}, errors.New("no such person") }, "the function of From(1) of order: no such person"},
		"panic": {func(o orderV1) (orderV2, error) { var list []string; return orderV2{First: list[len(o.Name)]}, nil }, "the function of From(1) of order: panic: runtime error: index out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var h hold
				killed(t, w, &h, typed(0), v1Of)
				x := newEverywhere(&h, v2Of)
				o := typed(0, x.defs()...)
				o.Types = []durable.TypeDef{durable.Type[orderV2]("order", 2, durable.From(1, c.up), wasV1)}
				w.boot(t, o)
				row := w.eventually("r", store.Interrupted)
				require.Equal(t, durable.CodeUndecodable, row.Code)
				require.Contains(t, row.Reason, c.says)

				w.crash()
				w.expire()
				w.boot(t, typed(2, x.defs()...))
				goesOn(t, w, "r")
				for place, v := range x.values(t, w) {
					require.Equal(t, v2Of(place), v, places[place])
				}
			})
		})
	}
}

// A type that has moved is not guessed to be the same: two of one shape may mean
// different things.
func TestAnUnknownEarlierNameIsRefusedUntilItIsNamed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		killed(t, w, &h, typed(0), v1Of)
		x := newEverywhere(&h, v2Of)
		o := with(x.defs()...)
		o.Types = []durable.TypeDef{durable.Type[orderV2]("order", 2, durable.From(1, splitName))}
		w.boot(t, o)
		row := w.eventually("r", store.Interrupted)
		require.Equal(t, durable.CodeUndecodable, row.Code)
		require.Contains(t, row.Reason, `durable.Was("durable_test.orderV1")`)
		w.crash()
		w.expire()
		w.boot(t, typed(2, x.defs()...))
		goesOn(t, w, "r")
		x.values(t, w)
	})
}

func TestRegisteredTypesThatCannotBeUsedAreRefusedByOpen(t *testing.T) {
	up := func(orderV1) (orderV2, error) { return orderV2{}, nil }
	for says, types := range map[string][]durable.TypeDef{
		`"order": From(1) is missing: what was recorded with version 1 could not be read`: {durable.Type[orderV2]("order", 2)},
		`"order": From(2) is missing`:                                {durable.Type[orderV4]("order", 4, durable.From(1, splitName), durable.From(3, addItems))},
		`"order": From(3) is missing`:                                {durable.Type[orderV4]("order", 4, durable.From(1, splitName), durable.From(2, makePerson))},
		`"order": there are two From(1)`:                             {durable.Type[orderV2]("order", 2, durable.From(1, splitName), durable.From(1, up))},
		`"order": From(2) leads nowhere`:                             {durable.Type[orderV2]("order", 2, durable.From(1, splitName), durable.From(2, makePerson))},
		`"order": From(0) leads nowhere`:                             {durable.Type[orderV2]("order", 2, durable.From(0, up), durable.From(1, up))},
		`"order": From(1) leads nowhere`:                             {durable.Type[orderV2]("order", 1, durable.From(1, up))},
		`From(1) makes durable_test.orderV2 and the present type is`: {durable.Type[orderV3]("order", 2, durable.From(1, up))},
		`From(1) makes durable_test.orderV2 and From(2) takes durable_test.orderV3`: {
			durable.Type[orderV4]("order", 3, durable.From(1, splitName), durable.From(2, addItems))},
		`the function of From(1) is nil`: {durable.Type[orderV2]("order", 2, durable.From[orderV1, orderV2](1, nil))},
		`versions begin with 1`:          {durable.Type[orderV1]("order", 0)},
		`the name "" of`:                 {durable.Type[orderV1]("", 1)},
		`the name "[]order" of`:          {durable.Type[orderV1]("[]order", 1)},
		`int is not a defined type`:      {durable.Type[int]("number", 1)},
		`is not a defined type: only`:    {durable.Type[[]orderV1]("orders", 1)},
		`error is not a defined type`:    {durable.Type[error]("error", 1)},
		`the name "order" is given to durable_test.orderV1 and to durable_test.orderV2`: {
			durable.Type[orderV1]("order", 1), durable.Type[orderV2]("other", 1, durable.Was("order"))},
		`durable_test.orderV1 is registered as "a" and as "b"`: {durable.Type[orderV1]("a", 1), durable.Type[orderV1]("b", 1)},
		`an entry is empty`: {{}},
	} {
		inWorld(t, func(t *testing.T, w *world) {
			_, err := durable.Open(context.Background(), w.data, durable.Options{Types: types})
			require.ErrorIs(t, err, durable.ErrInvalid)
			require.ErrorContains(t, err, says)
		})
	}
}

// The name that was registered is kept, and not what Go calls the type.
func TestARegisteredNameStandsInTheCheckpoint(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		x := newEverywhere(&hold{open: true}, v2Of)
		w.boot(t, typed(2, x.defs()...))
		x.begin(t, w)
		x.values(t, w)
		got := map[string]string{}
		for _, ev := range w.events("r") {
			p, err := operate.On(w.eng).Payload("r", ev)
			require.NoError(t, err)
			if p.Type != "" {
				got[string(ev.Type)+" "+ev.Key] = fmt.Sprintf("%s@%d", p.Type, p.Version)
			}
		}
		require.Equal(t, map[string]string{
			"workflow_created ": "order@2", "step_completed value": "order@2", "step_completed pointer": "order@2",
			"step_completed slice": "[]order@2", "step_completed map": "map[string]order@2", "step_completed relaxed": "order@2", "signal_received early": "order@2",
			"signal_received late": "order@2", "item_completed items[0]": "order@2", "item_completed items[1]": "order@2",
			"step_completed branch": "order@2", "child_finished child": "order@2", "attempt_failed seek": "order@2",
			"progress_saved seek": "order@2", "step_completed seek": "order@2", "workflow_completed ": "order@2",
		}, got)
	})
}

// The hash of an input, an item, or of WithInput is made of its encoding, which
// another version of the type changes: that is no other value.
func TestInputsOfAnEarlierVersionAreNotTakenForOthers(t *testing.T) {
	program := func(h *hold, in func(i int) (any, error)) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			v, err := in(3)
			if err != nil {
				return err
			}
			if err := durable.Do(ctx, "with", func(context.Context) error { return nil }, durable.WithInput(v)); err != nil {
				return err
			}
			return durable.Do(ctx, "hold", h.body)
		}
	}
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		then := durable.Define("w", func(ctx context.Context, o orderV1) (int, error) {
			items, err := durable.Map(ctx, "items", []orderV1{o, v1Of(2)}, durable.MapOptions{}, func(context.Context, orderV1) (int, error) { return 1, nil })
			if err != nil {
				return 0, err
			}
			return len(items), program(&h, func(i int) (any, error) { return v1Of(i), nil })(ctx)
		})
		w.boot(t, typed(0, then))
		start(t, w, then, "r", v1Of(1))
		synctest.Wait()
		require.Equal(t, 1, h.count())
		now := durable.Define("w", func(ctx context.Context, o orderV4) (int, error) {
			items, err := durable.Map(ctx, "items", []orderV4{o, v4Of(2)}, durable.MapOptions{}, func(context.Context, orderV4) (int, error) { return 2, nil })
			if err != nil {
				return 0, err
			}
			return items[0] + items[1], program(&h, func(i int) (any, error) { return v4Of(i), nil })(ctx)
		})
		w.reboot(t, typed(4, now))
		got, err := wait(t, w, now, "r")
		require.NoError(t, err)
		require.Equal(t, 2, got, "the items are not done again")

		again, err := now.Start(w.ctx(), "r", v4Of(1))
		require.NoError(t, err, "the same start, by a later program")
		_, err = again.Wait(w.ctx())
		require.NoError(t, err)
		_, err = now.Start(w.ctx(), "r", v4Of(2))
		require.ErrorIs(t, err, durable.ErrConflict)
	})
}

// Within one version another item is still noticed.
func TestAnotherItemOfARegisteredTypeIsNoticed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		define := func(second int) *durable.Workflow[int, int] {
			return durable.Define("w", func(ctx context.Context, _ int) (int, error) {
				_, err := durable.Map(ctx, "items", []orderV2{v2Of(1), v2Of(second)}, durable.MapOptions{}, func(context.Context, orderV2) (int, error) { return 1, nil })
				if err != nil {
					return 0, err
				}
				return 0, durable.Do(ctx, "hold", h.body)
			})
		}
		w.boot(t, typed(2, define(2)))
		start(t, w, define(2), "r", 0)
		synctest.Wait()
		w.reboot(t, typed(2, define(3)))
		_, err := wait(t, w, define(3), "r")
		require.ErrorIs(t, err, durable.ErrDefinitionChanged)
	})
}

// A reader that only shows values need not know their types.
func TestUntypedReadersReadEveryVersion(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		x := newEverywhere(&hold{open: true}, v2Of)
		w.boot(t, typed(2, x.defs()...))
		x.begin(t, w)
		x.values(t, w)
		w.open(t, durable.Options{})
		var v any
		shown, err := wait(t, w, durable.Ref[any, any]("everywhere"), "r")
		require.NoError(t, err)
		require.Equal(t, map[string]any{"First": "Ada", "Last": "L14"}, shown)
		for _, ev := range w.events("r") {
			require.NoError(t, operate.On(w.eng).Decode("r", ev, &v))
		}
		// And untyped values, as a person sends them, are of the present version.
		now := durable.Define("now", func(ctx context.Context, in orderV4) (orderV4, error) {
			return durable.Await[orderV4](ctx, "order")
		})
		w.boot(t, typed(4, now))
		_, err = durable.Ref[map[string]any, any]("now").Start(w.ctx(), "n", map[string]any{"Items": []int{5}})
		require.NoError(t, err)
		require.NoError(t, w.eng.Signal(w.ctx(), "n", "order", map[string]any{"Items": []int{9}}))
		got, err := wait(t, w, now, "n")
		require.NoError(t, err)
		require.Equal(t, []int{9}, got.Items)
	})
}
