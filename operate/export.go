package operate

import (
	"context"
	"fmt"
	"io"

	"github.com/holdfast-dev/holdfast/internal/runfile"
)

// Export writes a run with all that belongs to it, every event of every branch
// and generation, its inbox and its row, as one file that Import reads on any
// store: lines of JSON, of which the last one has a checksum of the others.
// docs/checkpoint-format.md describes it. Payloads are written as they are kept:
// what is encrypted stays encrypted. The run is written as it was at the moment
// of the call, also while it is executed. Nothing is changed.
//
// Children are runs of their own, and exported by themselves. The attributes,
// headers and names in the file are not encrypted; neither are payloads of an
// engine without Options.Encrypt.
//
// Errors: durable.ErrNotFound; *durable.DamagedError when what a resume needs is damaged: Repair
// comes first; durable.ErrUnavailable; those of w. After an error the file is not whole,
// and Import refuses it.
func (op *Operator) Export(ctx context.Context, id string, w io.Writer) error {
	if _, err := runfile.Export(ctx, op.store, id, w, storeError); err != nil {
		return fmt.Errorf("durable: exporting run %s: %w", id, damaged(err))
	}
	return nil
}
