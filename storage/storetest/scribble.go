package storetest

import "scanode/storage"

// Scribble wraps s. Keys and values of its iterators, and of those of its
// snapshots, are overwritten as soon as the contract lets the engine do so: by
// the next positioning call and by Close. Code that keeps them longer reads
// rubbish in every run instead of now and then.
func Scribble(s storage.Store) storage.Store { return scribbleStore{s} }

type scribbleStore struct{ storage.Store }

// NewIter implements storage.Reader.
func (s scribbleStore) NewIter(r storage.Range) (storage.Iter, error) {
	return scribbleIterOf(s.Store.NewIter(r))
}

// Snapshot implements storage.Store.
func (s scribbleStore) Snapshot() (storage.Snapshot, error) {
	sn, err := s.Store.Snapshot()
	if err != nil {
		return nil, err
	}
	return scribbleSnapshot{sn}, nil
}

type scribbleSnapshot struct{ storage.Snapshot }

// NewIter implements storage.Reader.
func (s scribbleSnapshot) NewIter(r storage.Range) (storage.Iter, error) {
	return scribbleIterOf(s.Snapshot.NewIter(r))
}

func scribbleIterOf(it storage.Iter, err error) (storage.Iter, error) {
	if err != nil {
		return nil, err
	}
	return &scribbleIter{Iter: it}, nil
}

// scribbleIter lends out copies and spoils them; what the engine returned may be
// its own memory and is left alone.
type scribbleIter struct {
	storage.Iter
	lent [][]byte
}

func (i *scribbleIter) spoil() {
	for _, b := range i.lent {
		for j := range b {
			b[j] = 0xDB
		}
	}
	i.lent = i.lent[:0]
}

func (i *scribbleIter) lend(b []byte) []byte {
	if b == nil {
		return nil
	}
	c := append(make([]byte, 0, len(b)), b...)
	i.lent = append(i.lent, c)
	return c
}

// Key implements storage.Iter.
func (i *scribbleIter) Key() []byte { return i.lend(i.Iter.Key()) }

// Value implements storage.Iter.
func (i *scribbleIter) Value() []byte { return i.lend(i.Iter.Value()) }

// First implements storage.Iter.
func (i *scribbleIter) First() bool { i.spoil(); return i.Iter.First() }

// Last implements storage.Iter.
func (i *scribbleIter) Last() bool { i.spoil(); return i.Iter.Last() }

// SeekGE implements storage.Iter.
func (i *scribbleIter) SeekGE(key []byte) bool {
	// The key may be a slice lent before, so it is spoilt afterwards.
	ok := i.Iter.SeekGE(key)
	i.spoil()
	return ok
}

// SeekLT implements storage.Iter.
func (i *scribbleIter) SeekLT(key []byte) bool {
	ok := i.Iter.SeekLT(key)
	i.spoil()
	return ok
}

// Next implements storage.Iter.
func (i *scribbleIter) Next() bool { i.spoil(); return i.Iter.Next() }

// Prev implements storage.Iter.
func (i *scribbleIter) Prev() bool { i.spoil(); return i.Iter.Prev() }

// Close implements storage.Iter.
func (i *scribbleIter) Close() error { i.spoil(); return i.Iter.Close() }
