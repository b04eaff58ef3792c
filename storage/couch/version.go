package couch

import (
	"bytes"
	"errors"
	"sync/atomic"

	tidwall "github.com/tidwall/btree"

	"scanode/etf"
	"scanode/storage"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

// generation is one file of the store. A compaction makes the next. The store itself and
// all who read an old version hold it; the last one closes it, and a file that has no name
// any more is gone with that.
type generation struct {
	file *file.File
	id   fileID
	refs atomic.Int64
	gone func() // called when nobody holds it any more
}

// hold takes part in g, unless nobody does any more.
func (g *generation) hold() bool {
	for {
		n := g.refs.Load()
		if n == 0 {
			return false
		}
		if g.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (g *generation) release() {
	if g.refs.Add(-1) == 0 {
		g.gone()
	}
}

// version is the store at one moment. It never changes: whoever has one, and holds its
// generation, reads without locks.
type version struct {
	gen  *generation
	tree btree.Tree
	over *tidwall.BTreeG[entry] // in front of the tree; nil if empty

	cache *btree.Cache // of the file's nodes
}

// acquire returns the current version with its generation held.
func (s *store) acquire() *version {
	for {
		// A version is replaced before its generation is let go of.
		if v := s.current.Load(); v.gen.hold() {
			return v
		}
	}
}

// get appends the value of a key to dst.
func (v *version) get(dst, key []byte) ([]byte, error) {
	if len(key) > maxKeyBytes {
		return dst, storage.ErrNotFound
	}
	k := etf.AppendBinary(make([]byte, 0, binaryHead+len(key)), key)
	var value []byte
	if v.over != nil {
		if e, ok := v.over.Get(entry{key: k}); ok {
			if e.value == nil {
				return dst, storage.ErrNotFound
			}
			return append(dst, e.value[binaryHead:]...), nil
		}
	}
	value, found, err := v.tree.Get(k)
	if err != nil {
		return dst, err
	}
	if !found {
		return dst, storage.ErrNotFound
	}
	value, err = userBytes(value)
	if err != nil {
		return dst, err
	}
	return append(dst, value...), nil
}

var errNoBinary = errors.New("a row that is no pair of binaries")

// userBytes returns the bytes of an encoded binary, which is what all keys and values of a
// tree of ours are.
func userBytes(term []byte) ([]byte, error) {
	if len(term) < binaryHead || term[0] != etf.TagBinary {
		return nil, errors.Join(storage.ErrCorrupt, errNoBinary)
	}
	return term[binaryHead:], nil
}

// isEmpty looks for a row.
func (v *version) isEmpty() (bool, error) {
	it := newIter(nil, v, storage.Range{})
	if it.First() {
		return false, nil
	}
	return true, it.err
}

// estimate returns about how many bytes of the file the keys from lower on and before upper,
// nil for the end, take.
func (v *version) estimate(lower, upper []byte) (int64, error) {
	if upper != nil && bytes.Compare(lower, upper) >= 0 {
		return 0, nil
	}
	from, err := v.tree.BytesBefore(etf.AppendBinary(nil, lower))
	if err != nil {
		return 0, err
	}
	to := max(0, v.tree.Root().Size)
	if upper != nil {
		if to, err = v.tree.BytesBefore(etf.AppendBinary(nil, upper)); err != nil {
			return 0, err
		}
	}
	return max(0, to-from), nil
}
