package lsm

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"scanode/storage"
)

type store struct {
	db  *pebble.DB
	dir string
}

func translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pebble.ErrNotFound):
		return storage.ErrNotFound
	case errors.Is(err, pebble.ErrClosed):
		return storage.ErrClosed
	case pebble.IsCorruptionError(err):
		return fmt.Errorf("lsm: %w: %v", storage.ErrCorrupt, err)
	}
	return fmt.Errorf("lsm: %w", err)
}

func (s *store) Get(dst, key []byte) ([]byte, error) { return get(s.db, dst, key) }

func get(r pebble.Reader, dst, key []byte) ([]byte, error) {
	v, c, err := r.Get(key)
	if err != nil {
		return dst, translate(err)
	}
	dst = append(dst, v...)
	return dst, translate(c.Close())
}

func (s *store) NewIter(r storage.Range) (storage.Iter, error) { return newIter(s.db, r) }

func newIter(r pebble.Reader, rg storage.Range) (storage.Iter, error) {
	it, err := r.NewIter(bounds(rg))
	if err != nil {
		return nil, translate(err)
	}
	return &iter{it: it}, nil
}

func (s *store) Apply(ops []storage.Op, sync bool) error {
	wo := pebble.NoSync
	if sync {
		wo = pebble.Sync
	}
	if len(ops) == 0 {
		if !sync {
			return nil
		}
		return translate(s.db.LogData(nil, wo))
	}
	b := s.db.NewBatch()
	for i := range ops {
		op := &ops[i]
		var err error
		switch op.Kind {
		case storage.Put:
			err = b.Set(op.Key, op.Value, nil)
		case storage.Delete:
			err = b.Delete(op.Key, nil)
		default:
			err = fmt.Errorf("lsm: unknown kind of operation %d", op.Kind)
		}
		if err != nil {
			return err
		}
	}
	if err := s.db.Apply(b, wo); err != nil {
		return translate(err)
	}
	return translate(b.Close())
}

type snapshot struct{ sn *pebble.Snapshot }

func (s *store) Snapshot() (storage.Snapshot, error)              { return &snapshot{s.db.NewSnapshot()}, nil }
func (s *snapshot) Get(dst, key []byte) ([]byte, error)           { return get(s.sn, dst, key) }
func (s *snapshot) NewIter(r storage.Range) (storage.Iter, error) { return newIter(s.sn, r) }
func (s *snapshot) Close() error                                  { return translate(s.sn.Close()) }

func (s *store) Checkpoint(dir string) error {
	return translate(s.db.Checkpoint(dir, pebble.WithFlushedWAL()))
}

func (s *store) Stats() (storage.Stats, error) {
	m := s.db.Metrics()
	return storage.Stats{Engine: Name, DiskBytes: int64(m.DiskSpaceUsage()), Text: m.String()}, nil
}

func (s *store) Close() error { return translate(s.db.Close()) }
