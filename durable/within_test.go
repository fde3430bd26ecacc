package durable_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// Types that contain a registered one, in each way in which a Go type can.
type (
	fieldOf[O any] struct {
		N     int
		Order O
	}
	pointerOf[O any] struct{ Order *O }
	sliceOf[O any]   struct{ List []O }
	mapOf[O any]     struct {
		ByName map[string]O `json:"by_name"`
	}
	arrayOf[O any] [2]O
	listOf[O any]  []O
	deepOf[O any]  struct{ In []map[string]*fieldOf[O] }

	embedsV1 struct {
		orderV1
		N int
	}
	embedsV2 struct {
		orderV2
		N int
	}
	embedsV4 struct {
		orderV4
		N int
	}
)

// A container is how values of a registered type are wrapped in three releases.
type container interface{ run(t *testing.T) }

type wrapped[A, B, D any] struct {
	v1 func(orderV1) A
	v2 func(orderV2) B
	v4 func(orderV4) D
}

func (c wrapped[A, B, D]) of1(place int) A { return c.v1(v1Of(place)) }
func (c wrapped[A, B, D]) of2(place int) B { return c.v2(v2Of(place)) }
func (c wrapped[A, B, D]) of4(place int) D { return c.v4(v4Of(place)) }

func (c wrapped[A, B, D]) run(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, w *world, h *hold){
		"not registered": func(t *testing.T, w *world, h *hold) { killed(t, w, h, typed(0), c.of1) },
		"version 1":      func(t *testing.T, w *world, h *hold) { killed(t, w, h, typed(1), c.of1) },
		"version 2":      func(t *testing.T, w *world, h *hold) { killed(t, w, h, typed(2), c.of2) },
		"version 4":      func(t *testing.T, w *world, h *hold) { killed(t, w, h, typed(4), c.of4) },
	} {
		t.Run(name+" is raised", func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var h hold
				before(t, w, &h)
				x := newEverywhere(&h, c.of4)
				w.boot(t, typed(4, x.defs()...))
				for place, v := range x.values(t, w) {
					require.Equal(t, c.of4(place), v, places[place])
				}
			})
		})
	}
	t.Run("version 4 parks where version 1 is the newest", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			var h hold
			killed(t, w, &h, typed(4), c.of4)
			old := newEverywhere(&h, c.of1)
			w.boot(t, typed(1, old.defs()...))
			row := w.eventually("r", store.Interrupted)
			require.Equal(t, durable.CodeUndecodable, row.Code)
			require.Contains(t, row.Reason, "version 4 of order, and version 1 is the newest this program knows")
		})
	})
	t.Run("version 1 parks where no type is registered, and goes on where one is", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			var h hold
			killed(t, w, &h, typed(1), c.of1)
			x := newEverywhere(&h, c.of4)
			w.boot(t, typed(0, x.defs()...))
			row := w.eventually("r", store.Interrupted)
			require.Equal(t, durable.CodeUndecodable, row.Code)
			require.Contains(t, row.Reason, "version 1 of the registered type order")
			_, err := wait(t, w, x.wf, "r")
			var unregistered *durable.UnregisteredTypeError
			require.ErrorAs(t, err, &unregistered)
			require.Equal(t, "order", unregistered.Type)

			w.crash()
			w.expire()
			x = newEverywhere(&h, c.of4)
			w.boot(t, typed(4, x.defs()...))
			goesOn(t, w, "r")
			for place, v := range x.values(t, w) {
				require.Equal(t, c.of4(place), v, places[place])
			}
		})
	})
}

func inFieldOf[O any](o O) fieldOf[O]     { return fieldOf[O]{N: 7, Order: o} }
func inPointerOf[O any](o O) pointerOf[O] { return pointerOf[O]{&o} }
func inSliceOf[O any](o O) sliceOf[O]     { return sliceOf[O]{[]O{o, o}} }
func inMapOf[O any](o O) mapOf[O]         { return mapOf[O]{map[string]O{"a": o}} }
func inArrayOf[O any](o O) arrayOf[O]     { return arrayOf[O]{o, o} }
func inListOf[O any](o O) listOf[O]       { return listOf[O]{o} }
func inDeepOf[O any](o O) deepOf[O] {
	f := inFieldOf(o)
	return deepOf[O]{[]map[string]*fieldOf[O]{{"x": &f, "none": nil}}}
}
func itself[O any](o O) O { return o }

// Wherever a registered type stands in a value, and wherever the value is read, it is
// raised, or the run is parked: never is it read as zeros.
func TestARegisteredTypeWithinAnotherIsReadThroughItsUpcasters(t *testing.T) {
	for name, c := range map[string]container{
		"itself":   wrapped[orderV1, orderV2, orderV4]{itself[orderV1], itself[orderV2], itself[orderV4]},
		"field":    wrapped[fieldOf[orderV1], fieldOf[orderV2], fieldOf[orderV4]]{inFieldOf[orderV1], inFieldOf[orderV2], inFieldOf[orderV4]},
		"pointer":  wrapped[pointerOf[orderV1], pointerOf[orderV2], pointerOf[orderV4]]{inPointerOf[orderV1], inPointerOf[orderV2], inPointerOf[orderV4]},
		"slice":    wrapped[sliceOf[orderV1], sliceOf[orderV2], sliceOf[orderV4]]{inSliceOf[orderV1], inSliceOf[orderV2], inSliceOf[orderV4]},
		"map":      wrapped[mapOf[orderV1], mapOf[orderV2], mapOf[orderV4]]{inMapOf[orderV1], inMapOf[orderV2], inMapOf[orderV4]},
		"array":    wrapped[arrayOf[orderV1], arrayOf[orderV2], arrayOf[orderV4]]{inArrayOf[orderV1], inArrayOf[orderV2], inArrayOf[orderV4]},
		"own list": wrapped[listOf[orderV1], listOf[orderV2], listOf[orderV4]]{inListOf[orderV1], inListOf[orderV2], inListOf[orderV4]},
		"deep":     wrapped[deepOf[orderV1], deepOf[orderV2], deepOf[orderV4]]{inDeepOf[orderV1], inDeepOf[orderV2], inDeepOf[orderV4]},
		"embedded": wrapped[embedsV1, embedsV2, embedsV4]{
			func(o orderV1) embedsV1 { return embedsV1{o, 7} }, func(o orderV2) embedsV2 { return embedsV2{o, 7} }, func(o orderV4) embedsV4 { return embedsV4{o, 7} },
		},
	} {
		t.Run(name, c.run)
	}
}

// The hash of an item or an input is made of its encoding, which another version of a
// type within changes: that is no other value.
func TestAnItemWithAnEarlierVersionWithinIsNotTakenForAnother(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		define := func(items func(context.Context) error) *durable.Workflow[int, int] {
			return durable.Define("w", func(ctx context.Context, _ int) (int, error) {
				if err := items(ctx); err != nil {
					return 0, err
				}
				return 1, durable.Do(ctx, "hold", h.body)
			})
		}
		then := define(func(ctx context.Context) error {
			_, err := durable.Map(ctx, "items", []fieldOf[orderV1]{inFieldOf(v1Of(1))}, durable.MapOptions{}, func(context.Context, fieldOf[orderV1]) (int, error) { return 1, nil })
			return err
		})
		now := define(func(ctx context.Context) error {
			_, err := durable.Map(ctx, "items", []fieldOf[orderV4]{inFieldOf(v4Of(1))}, durable.MapOptions{}, func(context.Context, fieldOf[orderV4]) (int, error) { return 2, nil })
			return err
		})
		w.boot(t, typed(1, then))
		start(t, w, then, "r", 0)
		synctest.Wait()
		w.reboot(t, typed(4, now))
		got, err := wait(t, w, now, "r")
		require.NoError(t, err)
		require.Equal(t, 1, got)
	})
}

// A name that a Go type could have is known for a registered one as well.
func TestARegisteredNameWithADotIsNotTakenForAGoType(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		o := typed(0)
		o.Types = []durable.TypeDef{durable.Type[orderV1]("shop.Order", 1)} // as a Go type might be called
		killed(t, w, &h, o, v1Of)
		x := newEverywhere(&h, v4Of)
		w.boot(t, typed(0, x.defs()...))
		row := w.eventually("r", store.Interrupted)
		require.Equal(t, durable.CodeUndecodable, row.Code)
		require.Contains(t, row.Reason, "registered type shop.Order")
	})
}

// ownReader reads its JSON itself: nobody else knows where in it the order stands.
type ownReader[O any] struct{ order O }

func (r ownReader[O]) MarshalJSON() ([]byte, error) { return durable.JSON().Encode([]any{r.order}) }

func (r *ownReader[O]) UnmarshalJSON(b []byte) error {
	var list []O
	if err := durable.JSON().Decode(b, &list); err != nil {
		return err
	}
	r.order = list[0]
	return nil
}

// What cannot be raised in its place parks the run, and is not read as it stands.
func TestAnEarlierVersionThatCannotBeRaisedParksTheRun(t *testing.T) {
	park := func(t *testing.T, before func(*testing.T, *world, *hold), o durable.Options, defs []durable.Definition, h *hold, w *world, says string) {
		before(t, w, h)
		o.Workflows = defs
		w.boot(t, o)
		row := w.eventually("r", store.Interrupted)
		require.Equal(t, durable.CodeUndecodable, row.Code)
		require.Contains(t, row.Reason, says)
	}
	t.Run("in a type that reads its JSON itself", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			var h hold
			x := newEverywhere(&h, func(place int) ownReader[orderV4] { return ownReader[orderV4]{v4Of(place)} })
			park(t, func(t *testing.T, w *world, h *hold) {
				killed(t, w, h, typed(1), func(place int) ownReader[orderV1] { return ownReader[orderV1]{v1Of(place)} })
			}, typed(4), x.defs(), &h, w, "reads its JSON itself")
		})
	})
	t.Run("with another codec", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			var h hold
			x := newEverywhere(&h, func(place int) fieldOf[orderV4] { return inFieldOf(v4Of(place)) })
			hex := func(version int) durable.Options {
				o := typed(version)
				o.Codec = hexCodec{}
				return o
			}
			park(t, func(t *testing.T, w *world, h *hold) {
				killed(t, w, h, hex(1), func(place int) fieldOf[orderV1] { return inFieldOf(v1Of(place)) })
			}, hex(4), x.defs(), &h, w, "register the type around them")
		})
	})
}

type orderRefused[O any] struct{ Order O }

func (e *orderRefused[O]) Error() string { return fmt.Sprintf("refused: %+v", e.Order) }

// An error that holds a registered type is found with it raised, or by its text alone.
func TestARegisteredTypeWithinAnErrorIsRaisedOrTheTextAloneIsLeft(t *testing.T) {
	options := func(version int, kind durable.ErrorKind, def durable.Definition) durable.Options {
		o := typed(version, def)
		o.Errors = []durable.ErrorKind{kind}
		return o
	}
	for version, found := range map[int]bool{4: true, 0: false} {
		inWorld(t, func(t *testing.T, w *world) {
			var h hold
			then := durable.Define("w", func(ctx context.Context, _ int) (bool, error) {
				_, err := durable.Step(ctx, "a", func(context.Context) (int, error) { return 0, durable.Permanent(&orderRefused[orderV1]{v1Of(3)}) })
				var refused *orderRefused[orderV1]
				if !errors.As(err, &refused) {
					return false, err
				}
				return true, durable.Do(ctx, "hold", h.body)
			})
			w.boot(t, options(1, durable.ErrorType[*orderRefused[orderV1]]("refused"), then))
			start(t, w, then, "r", 0)
			synctest.Wait()
			now := durable.Define("w", func(ctx context.Context, _ int) (bool, error) {
				_, err := durable.Step(ctx, "a", func(context.Context) (int, error) { return 0, nil })
				var refused *orderRefused[orderV4]
				ok := errors.As(err, &refused)
				if ok && refused.Order.Buyer != v4Of(3).Buyer {
					return false, fmt.Errorf("it is %+v", refused.Order)
				}
				if err == nil || err.Error() == "" {
					return false, errors.New("the text is lost")
				}
				return ok, durable.Do(ctx, "hold", h.body)
			})
			w.reboot(t, options(version, durable.ErrorType[*orderRefused[orderV4]]("refused"), now))
			got, err := wait(t, w, now, "r")
			require.NoError(t, err)
			require.Equal(t, found, got)
		})
	}
}

// JSON that takes the place of a recorded value is read in the version that it is
// written in, and refused where nobody can tell which that is.
func TestEditedJSONIsReadInTheVersionThatItIsWrittenIn(t *testing.T) {
	const (
		asRecorded = `{"Name":"Ada L9"}`
		asNow      = `{"Buyer":{"Given":"Ada","Family":"L9"},"Items":[1]}`
		asNeither  = `{"Price":3}`
	)
	for _, c := range []struct {
		name   string
		engine int // release that edits
		json   string
		says   string // of the refusal
	}{
		{"as it is recorded", 4, asRecorded, ""},
		{"as it is now", 4, asNow, ""},
		{"as neither", 4, asNeither, "neither version 1 of order, which is recorded, nor version 4"},
		{"as it is recorded, by a program without the type", 0, asRecorded, ""},
		{"as it is now, by a program without the type", 0, asNow, `the field "Buyer"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var h hold
				then := durable.Define("w", func(ctx context.Context, _ int) (orderV1, error) {
					o, err := durable.Step(ctx, "a", func(context.Context) (orderV1, error) { return v1Of(3), nil })
					if err != nil {
						return o, err
					}
					return o, durable.Do(ctx, "hold", h.body)
				})
				w.boot(t, typed(1, then))
				start(t, w, then, "r", 0)
				synctest.Wait()
				w.crash()
				w.expire()
				w.open(t, typed(c.engine))
				_, err := operate.On(w.eng).Edit(w.ctx(), "r", "a", json.RawMessage(c.json), operate.EditOptions{})
				if c.says != "" {
					require.ErrorContains(t, err, c.says)
					return
				}
				require.NoError(t, err)
				now := durable.Define("w", func(ctx context.Context, _ int) (orderV4, error) {
					o, err := durable.Step(ctx, "a", func(context.Context) (orderV4, error) { return orderV4{}, nil })
					if err != nil {
						return o, err
					}
					return o, durable.Do(ctx, "hold", h.body)
				})
				w.boot(t, typed(4, now))
				goesOn(t, w, "r")
				got, err := wait(t, w, now, "r")
				require.NoError(t, err)
				require.Equal(t, v4Of(9), got)
			})
		})
	}
}

// The file of a run is that of the same start also when the type of the input has
// changed since.
func TestARunBeginsFromAFileWhoseInputIsOfAnEarlierVersion(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		then := durable.Define("w", func(ctx context.Context, o fieldOf[orderV1]) (int, error) {
			return o.N, durable.Do(ctx, "hold", h.body)
		})
		w.boot(t, typed(1, then))
		start(t, w, then, "r", inFieldOf(v1Of(3)))
		synctest.Wait()
		var file bytes.Buffer
		require.NoError(t, operate.On(w.eng).Export(w.ctx(), "r", &file))
		w.crash()
		w.data = memory.Open()
		now := durable.Define("w", func(ctx context.Context, o fieldOf[orderV4]) (string, error) {
			return o.Order.Buyer.Family, durable.Do(ctx, "hold", h.body)
		})
		w.boot(t, typed(4, now))
		_, err := now.Start(w.ctx(), "r", inFieldOf(v4Of(4)), operate.FromExport(file.Bytes()))
		require.ErrorIs(t, err, durable.ErrConflict)
		_, err = now.Start(w.ctx(), "r", inFieldOf(v4Of(3)), operate.FromExport(file.Bytes()))
		require.NoError(t, err)
		got, err := wait(t, w, now, "r")
		require.NoError(t, err)
		require.Equal(t, "L3", got)
	})
}

// What the run tells, keeps for its next generation, or is told by hand is read alike.
func TestARegisteredTypeWithinAPublishedAndARenewedValueIsRaised(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		then := durable.Define("w", func(ctx context.Context, in fieldOf[orderV1]) (int, error) {
			if err := durable.Publish(ctx, "state", in); err != nil {
				return 0, err
			}
			if in.N == 7 {
				in.N++
				return 0, durable.Continue(ctx, in)
			}
			return 0, durable.Do(ctx, "hold", h.body)
		})
		w.boot(t, typed(1, then))
		start(t, w, then, "r", inFieldOf(v1Of(3)))
		synctest.Wait()
		want := fieldOf[orderV4]{8, v4Of(3)}
		now := durable.Define("w", func(ctx context.Context, in fieldOf[orderV4]) (int, error) {
			if in.Order.Buyer != want.Order.Buyer {
				return 0, durable.Permanent(fmt.Errorf("it is %+v", in))
			}
			if err := durable.Publish(ctx, "state", in); err != nil {
				return 0, err
			}
			return 0, durable.Do(ctx, "hold", h.body)
		})
		w.reboot(t, typed(4, now))
		got, ok, err := durable.Published[fieldOf[orderV4]](w.ctx(), "r", "state")
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, want, got)
		_, err = wait(t, w, now, "r")
		require.NoError(t, err)
	})
}
