package sqlstore

import "github.com/holdfast-dev/holdfast/store"

// BranchRow is a row of the branches table as a reader selects it.
type BranchRow struct {
	N          int32  `db:"n"`
	Parent     int32  `db:"parent"`
	Generation int32  `db:"generation"`
	Cutoff     int64  `db:"cutoff"`
	CutScope   string `db:"cut_scope"`
	Reason     string `db:"reason"`
	CreatedAt  int64  `db:"created_at"`
}

// Branch returns the record.
func (r *BranchRow) Branch() store.Branch {
	return store.Branch{
		N: r.N, Parent: r.Parent, Generation: r.Generation, Cutoff: r.Cutoff, CutScope: r.CutScope, Reason: r.Reason,
		CreatedAt: store.Time(r.CreatedAt),
	}
}
