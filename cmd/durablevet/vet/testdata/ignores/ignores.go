// Package ignores has suppressions, and what is wrong with them.
package ignores

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

func suppressed(ctx context.Context) error { // want suppressed:"durable"
	_ = time.Now() //durablevet:ignore clock only for the log

	//durablevet:ignore random a sample of the log,
	// which may differ
	_ = rand.IntN(6)

	//durablevet:ignore clock for the log
	//durablevet:ignore random for the log
	_ = time.Now().Add(time.Duration(rand.IntN(6)))
	return durable.Sleep(ctx, 1)
}

func wrong(ctx context.Context) error { // want wrong:"durable"
	_ = time.Now() /* want `clock: time.Now` `ignore: a reason is missing, so nothing is suppressed` */ //durablevet:ignore clock

	_ = time.Now() /* want `clock: time.Now` `ignore: which rule, and why` */ //durablevet:ignore

	_ = time.Now() /* want `clock: time.Now` `ignore: there is no rule time` */ //durablevet:ignore time because of this

	_ = time.Now() /* want `clock: time.Now` `ignore: this suppresses nothing` */ //durablevet:ignore random because of that

	//durablevet:ignore clock nothing is below // want `ignore: this suppresses nothing`
	return durable.Sleep(ctx, 1)
}
