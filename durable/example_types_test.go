package durable_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// Address is what a program records now; addressV1 is what it recorded before.
type Address struct{ Street, City string }

type addressV1 struct{ Text string } // "1 Main St, Springfield"

// A value that was recorded by an earlier release is read as what it is today.
func ExampleType() {
	ctx := context.Background()
	st := memory.Open()

	// The earlier release, which had not registered the type, kept an address.
	earlier := durable.Define("keep", func(_ context.Context, in addressV1) (addressV1, error) { return in, nil })
	eng, err := durable.Open(ctx, st.Handle(), durable.Options{Workflows: []durable.Definition{earlier}, Logger: quiet})
	if err != nil {
		panic(err)
	}
	if _, err := earlier.Run(durable.NewContext(ctx, eng), "r", addressV1{"1 Main St, Springfield"}); err != nil {
		panic(err)
	}
	if err := eng.Close(); err != nil {
		panic(err)
	}

	// This release has split it, and says how.
	address := durable.Type[Address]("address", 2,
		durable.Was("durable_test.addressV1"),
		durable.From(1, func(a addressV1) (Address, error) {
			street, city, _ := strings.Cut(a.Text, ", ")
			return Address{street, city}, nil
		}))
	eng, err = durable.Open(ctx, st.Handle(), durable.Options{Types: []durable.TypeDef{address}, Logger: quiet})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	run, err := durable.Ref[Address, Address]("keep").Handle(durable.NewContext(ctx, eng), "r")
	if err != nil {
		panic(err)
	}
	a, err := run.Wait(ctx)
	fmt.Println(a.City, err)
	// Output: Springfield <nil>
}

// What is recorded is encrypted with k2; what k1 has encrypted stays readable.
func ExampleStaticKeys() {
	ctx := context.Background()
	hello := durable.Define("hello", func(_ context.Context, name string) (string, error) { return "Hello " + name, nil })
	eng, err := durable.Open(ctx, memory.Open(), durable.Options{
		Workflows: []durable.Definition{hello}, Logger: quiet,
		Encrypt: durable.StaticKeys("k2", map[string][]byte{"k1": key("an old one"), "k2": key("32 random bytes in earnest")}),
	})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	ctx = durable.NewContext(ctx, eng)
	if _, err := hello.Run(ctx, "r", "Ada"); err != nil {
		panic(err)
	}
	for ev, err := range eng.History(ctx, "r") {
		if err != nil {
			panic(err)
		}
		if p, err := operate.On(eng).Payload("r", ev); p.KeyID != "" {
			fmt.Println(ev.Type, p.KeyID, p, err)
		}
	}
	// Output:
	// workflow_created k2 "Ada" <nil>
	// workflow_completed k2 "Hello Ada" <nil>
}
