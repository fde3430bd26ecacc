package cli_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheAdviceForARunThatFailedWithItsChildLeadsOn(t *testing.T) {
	d := newDesk(t)
	a := d.with("SHOP_FAIL=add").sh("shop durable run parent --id 'my f' --input 1")
	require.Equal(t, 1, a.code, a.err)
	next := regexp.MustCompile(`(?m)^Mend the cause, then: (.*)$`).FindStringSubmatch(a.err)
	require.NotNil(t, next, a.err)
	require.Equal(t, "shop durable resume 'my f/count' && shop durable resume 'my f'", next[1])

	plan := d.with("SHOP_FAIL=add").sh("shop durable resume 'my f' --dry-run")
	require.Contains(t, plan.out, "  first        shop durable resume 'my f/count'\n")

	child := d.ok("shop durable resume 'my f/count'")
	parent := regexp.MustCompile(`(?m)^Its parent my f has failed. Resume it: (.*)$`).FindStringSubmatch(child.err)
	require.NotNil(t, parent, child.err)
	require.Contains(t, d.ok(parent[1]).out, "Workflow my f completed: 0")
}

func TestARunIsResumedWithTheChildThatItsProcessHasLeft(t *testing.T) {
	d := newDesk(t)
	p := d.with("SHOP_HOLD=add").start("shop durable run parent --id f --input 1")
	d.until("add 0")
	p.signal(9)
	p.wait()
	require.Contains(t, d.ok("timeout 60 shop durable run parent --resume f").out, "Workflow f completed: 0")
}
