package otlptest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/test/otlptest"
)

func TestATreeIsPrintedInTheOrderOfTime(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }
	spans := []otlptest.Span{
		{TraceID: "t", ID: "4", Parent: "2", Name: "later", Begin: at(5), End: at(6), Failed: true, Status: "error"},
		{TraceID: "t", ID: "3", Parent: "2", Name: "earlier", Begin: at(2), End: at(3), Attributes: otlptest.Attributes{"a": 1, "b": 2}},
		{TraceID: "t", ID: "5", Parent: "1", Name: "second", Begin: at(9), End: at(9), Links: []otlptest.SpanLink{{TraceID: "t", ID: "2"}, {TraceID: "u", ID: "2"}}},
		{TraceID: "t", ID: "2", Parent: "1", Name: "first", Begin: at(1), End: at(8)},
		{TraceID: "t", ID: "1", Name: "root", Begin: at(0), End: at(1)},
		{TraceID: "t", ID: "6", Parent: "9", Name: "orphan", Begin: at(10), End: at(11)},
	}
	roots := otlptest.Trees(spans)
	require.Len(t, roots, 2)
	require.False(t, roots[0].Lost)
	require.True(t, roots[1].Lost)
	var b strings.Builder
	require.NoError(t, roots[0].Print(&b, "b"))
	require.Equal(t, `root  1ms
├─ first  7ms
│  ├─ earlier  1ms  b=2
│  └─ later  1ms  failed: error
└─ second  0s  -> first (2)  -> another trace (2)
`, b.String())
	n := 0
	for range roots[0].All {
		n++
	}
	require.Equal(t, 5, n)
}
