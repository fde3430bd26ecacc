package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

func TestErrorsMatchTheirSentinelAndNoOther(t *testing.T) {
	sentinels := []error{
		store.ErrClosed, store.ErrInvalid, store.ErrNotFound, store.ErrExists, store.ErrFenced, store.ErrStatus, store.ErrOwned,
		store.ErrOccupied, store.ErrCancelAsked, store.ErrTooLarge, store.ErrUnknown, store.ErrCorrupt, store.ErrSchema,
	}
	for _, c := range []struct {
		err     error
		is      error
		message string
	}{
		{&store.ExistsError{RunID: "r"}, store.ErrExists, `store: run "r" exists already`},
		{&store.StatusError{RunID: "r", Status: store.Completed}, store.ErrStatus, `store: run "r" is completed, which does not allow this`},
		{&store.StatusError{RunID: "r", Status: store.Completed, To: store.Running}, store.ErrStatus, `store: run "r" is completed and cannot become running`},
		{&store.OwnedError{RunID: "r", Owner: "e"}, store.ErrOwned, `store: run "r" is owned by the live executor e`},
		{&store.OccupiedError{RunID: "r", Key: "k", Holder: "s"}, store.ErrOccupied, `store: run "r": k is occupied by s`},
		{&store.TooLargeError{RunID: "r", Size: 2, Limit: 1}, store.ErrTooLarge, `store: run "r": the change is 2 bytes; the limit is 1`},
		{&store.TooLargeError{RunID: "r", Key: "k", Size: 2, Limit: 1}, store.ErrTooLarge, `store: run "r": k is 2 bytes; the limit is 1`},
		{&store.SchemaError{Have: 3, Know: 2}, store.ErrSchema, "store: schema version 3 is newer than version 2, the newest this program knows: use a newer program, or restore the backup that was made before the upgrade"},
		{&store.SchemaError{Have: 1, Know: 2}, store.ErrSchema, "store: schema version 1 is older than version 2, which this program needs: migrate it"},
		{&store.SchemaError{Have: 1, Know: 2, Todo: "call Migrate"}, store.ErrSchema, "store: schema version 1 is older than version 2, which this program needs: call Migrate"},
		{&store.NameError{Kind: "run id", Value: "", Reason: "must not be empty"}, store.ErrInvalid, `durable: run id "": must not be empty`},
	} {
		require.EqualError(t, c.err, c.message)
		wrapped := fmt.Errorf("while at it: %w", c.err)
		for _, s := range sentinels {
			require.Equal(t, s == c.is, errors.Is(wrapped, s), "%T is %v", c.err, s)
		}
	}
}
