package dashboard_test

import (
	"context"
	"regexp"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// passing is a store on which something happens once between two reads.
type passing struct {
	store.Store
	listed, loaded atomic.Pointer[func()]
}

func once(p *atomic.Pointer[func()]) {
	if f := p.Swap(nil); f != nil {
		(*f)()
	}
}

func (p *passing) Load(ctx context.Context, id string, c store.Cursor) (*store.History, error) {
	if c.Tail > 0 { // by a row of the list, which was read
		once(&p.listed)
	}
	h, err := p.Store.Load(ctx, id, c)
	if err != nil || c.NoEvents {
		return h, err
	}
	events := h.Events
	h.Events = func(yield func(store.Event, error) bool) {
		once(&p.loaded)
		events(yield)
	}
	return h, nil
}

var rowStatus = regexp.MustCompile(`(?s)<tr data-key="r">\s*(?:<td class="s-ck">.*?</td>\s*)?<td class="s-st">.*?</svg>([^<]*)<.*?<div class="where">(.*?)</div>`)

func TestAPageShowsARunAsItWasAtOneMoment(t *testing.T) {
	st := &passing{Store: sqliteStore(t)}
	s := open(t, st, dashboard.Options{})
	ends := func() {
		require.NoError(t, s.eng.Signal(t.Context(), "r", "approve", true))
		h, err := durable.Ref[Order, string]("checkout").Handle(withEngine(s), "r")
		require.NoError(t, err)
		_, err = h.Wait(t.Context())
		require.NoError(t, err)
	}
	s.asks("r")

	st.loaded.Store(&ends)
	page := s.browse("/runs/r").body
	require.Nil(t, st.loaded.Load())
	require.Contains(t, page, `value="approve"`)
	require.NotContains(t, page, "parcel of r")
	require.NotContains(t, page, ">Completed<")

	_, err := st.Delete(t.Context(), store.Deletion{RunIDs: []string{"r"}})
	require.NoError(t, err)
	s.asks("r")
	st.listed.Store(&ends)
	row := rowStatus.FindStringSubmatch(s.browse("/").body)
	require.Nil(t, st.listed.Load())
	require.Len(t, row, 3)
	require.Equal(t, "Completed", row[1])
	require.Contains(t, row[2], "Completed")
}
