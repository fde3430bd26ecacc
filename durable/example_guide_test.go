package durable_test

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// checkoutShop is the shop of docs/guides/changing-code.md.
type checkoutShop struct{}

func (s *checkoutShop) check(ctx context.Context, o string) error {
	return durable.Do(ctx, "check", did("check "+o))
}

func (s *checkoutShop) glance(ctx context.Context, o string) error {
	return durable.Do(ctx, "glance", did("glance "+o))
}

// CheckoutV1 is the workflow as it was.
func (s *checkoutShop) CheckoutV1(ctx context.Context, o string) (string, error) {
	return "shipped", s.glance(ctx, o)
}

// Checkout is the workflow as it is.
func (s *checkoutShop) Checkout(ctx context.Context, o string) (string, error) {
	return "checked and shipped", s.check(ctx, o)
}

// A change within a function: which way a run goes is asked once, and recorded.
func ExamplePatched_bothWays() {
	s := new(checkoutShop)
	runIn(durable.Define("checkout", func(ctx context.Context, o string) (string, error) {
		var err error
		if durable.Patched(ctx, "fraud-check") {
			err = s.check(ctx, o) // the code as it is now
		} else {
			err = s.glance(ctx, o) // the code as it was
		}
		return "shipped", err
	}), "45")
	// Output:
	// check 45
	// shipped <nil>
}

// A change of the whole function: both are there, and each run stays with its own.
func ExampleVersion_sideBySide() {
	s, st, ctx := new(checkoutShop), memory.Open(), context.Background()
	v1 := durable.Define("checkout", s.CheckoutV1)
	v2 := durable.Define("checkout", s.Checkout, durable.Version("2"))
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{v1, v2}})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	ctx = durable.NewContext(ctx, eng)
	fmt.Println(v1.Run(ctx, "earlier", "1"))
	fmt.Println(v2.Run(ctx, "later", "2"))
	// Output:
	// glance 1
	// shipped <nil>
	// check 2
	// checked and shipped <nil>
}
