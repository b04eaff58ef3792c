package lsm

import (
	"bytes"
	"fmt"

	"scanode/storage"
)

// EstimateBytes implements storage.Store: table blocks count, memtables do not.
func (s *store) EstimateBytes(r storage.Range) (n int64, err error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.leave()
	o, empty := bounds(r)
	if empty {
		return 0, nil
	}
	lower, upper := o.LowerBound, o.UpperBound
	if upper == nil {
		it, err := s.db.NewIter(&o)
		if err != nil {
			return 0, s.translate(err)
		}
		if it.Last() {
			upper = append(bytes.Clone(it.Key()), 0)
		}
		if err := it.Close(); err != nil {
			return 0, s.translate(err)
		}
	}
	if bytes.Compare(lower, upper) >= 0 {
		return 0, nil
	}
	defer s.guard(&err)
	size, err := s.db.EstimateDiskUsage(lower, upper)
	if err != nil {
		return 0, fmt.Errorf("estimating: %w", s.translate(err))
	}
	return int64(size), nil
}
