package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/test/pgtest/proxy"
)

// cutOff works through a proxy that cuts connections when a COMMIT is on its way, until
// it has done so often enough, and then until all transfers are through.
func cutOff(ctx context.Context, bank *Bank, o options) (int, error) {
	p, err := proxy.Listen(proxy.Target(bank.dsn))
	if err != nil {
		return 0, err
	}
	defer p.Close()
	cut, err := openBank(bank.kind, p.DSN(bank.dsn))
	if err != nil {
		return 0, err
	}
	defer cut.db.Close()
	cut.book = bank.book
	var mu sync.Mutex
	rng, cuts := rand.New(rand.NewPCG(o.seed, 0)), 0
	p.SetPolicy(func(r proxy.Request) proxy.Action {
		if !slices.ContainsFunc(r.SQL, func(sql string) bool { return strings.HasPrefix(sql, "COMMIT") }) {
			return proxy.Pass
		}
		mu.Lock()
		defer mu.Unlock()
		if cuts == o.cuts || rng.IntN(2) == 0 {
			return proxy.Pass
		}
		cuts++
		return []proxy.Action{proxy.CutBefore, proxy.CutBlind, proxy.CutReply}[rng.IntN(3)]
	})
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return cuts
	}
	for transfers := o.transfers; ; transfers += o.transfers {
		if err := cut.work(ctx, transfers, again); err != nil {
			return count(), err
		}
		if _, err := bank.audit(); err != nil {
			return count(), err
		}
		if count() == o.cuts {
			return o.cuts, nil
		}
		if transfers > 1000*o.transfers {
			return count(), fmt.Errorf("only %d commits could be cut", count())
		}
	}
}

// again repeats an order whose connection was cut. The order's own key makes that
// safe: if the first one has committed, the second does nothing.
func again(ctx context.Context, order func() error) error {
	for {
		err := order()
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
}
