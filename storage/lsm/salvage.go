package lsm

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/sstable/block/blockkind"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
)

func tableName(num uint64) string { return fmt.Sprintf("%06d.sst", num) }

// openTable opens a table outside of any store. Nothing it reads goes into a cache.
// Closing the reader closes the file.
func openTable(fsys vfs.FS, path string) (*sstable.Reader, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	readable, err := objstorageprovider.NewFileReadable(f, fsys, objstorageprovider.NewReadaheadConfig(), path)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	o := &pebble.Options{}
	o.EnsureDefaults()
	r, err := sstable.NewReader(context.Background(), readable, o.MakeReaderOptions())
	if err != nil {
		return nil, errors.Join(err, readable.Close())
	}
	return r, nil
}

// verify reads every block of every table of the store, which is being opened. The
// error wraps ErrCorrupt.
func (s *store) verify() error {
	levels, err := s.db.SSTables()
	if err != nil {
		return err
	}
	for _, tables := range levels {
		for _, t := range tables {
			name := tableName(uint64(t.BackingSSTNum))
			if err := verifyTable(s.engine.fs, s.engine.fs.PathJoin(s.dir, name)); err != nil {
				return fmt.Errorf("%w: %s: %w", storage.ErrCorrupt, name, err)
			}
		}
	}
	return nil
}

func verifyTable(fsys vfs.FS, path string) (err error) {
	defer recovered(&err)
	r, err := openTable(fsys, path)
	if err != nil {
		return err
	}
	err = r.ValidateBlockChecksums()
	return errors.Join(err, r.Close())
}

// recovered, deferred, turns a panic into an error: the reader of tables has no
// other answer to some damage.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%v", r)
	}
}

// tableReader reads the rows of a table, damaged blocks left out.
type tableReader struct {
	r          *sstable.Reader
	separators [][]byte // of each block: no key in it is greater, all behind it are, or are equal and older
	point      func(key pebble.InternalKey, value []byte) error
	rangeDel   func(start, end []byte, seq uint64) error
	lost       []string
}

// readTable calls point and rangeDel with what is in the table at path; slices are
// valid during the call. lost says what could not be read. An error is that of a
// callback.
func readTable(fsys vfs.FS, path string, point func(key pebble.InternalKey, value []byte) error,
	rangeDel func(start, end []byte, seq uint64) error) (lost []string, err error) {
	t := tableReader{point: point, rangeDel: rangeDel}
	name := fsys.PathBase(path)
	if t.r, err = guarded(func() (*sstable.Reader, error) { return openTable(fsys, path) }); err != nil {
		return []string{fmt.Sprintf("%s: nothing can be read: %v", name, err)}, nil
	}
	defer t.r.Close()
	err = t.rangeDels(name)
	if err == nil {
		err = t.points(name)
	}
	return t.lost, err
}

// guarded runs f with panics contained.
func guarded[T any](f func() (T, error)) (v T, err error) {
	defer recovered(&err)
	return f()
}

// fromCallback marks an error that ends the reading.
type fromCallback struct{ error }

func (t *tableReader) rangeDels(name string) error {
	_, err := guarded(func() (struct{}, error) { return struct{}{}, t.eachRangeDel() })
	var ours fromCallback
	if errors.As(err, &ours) {
		return ours.error
	}
	if err != nil {
		t.lost = append(t.lost, fmt.Sprintf("%s: its range deletions: %v", name, err))
	}
	return nil
}

func (t *tableReader) eachRangeDel() error {
	it, err := t.r.NewRawRangeDelIter(context.Background(), sstable.NoFragmentTransforms, sstable.NoReadEnv)
	if err != nil || it == nil {
		return err
	}
	defer it.Close()
	span, err := it.First()
	for ; span != nil; span, err = it.Next() {
		for _, k := range span.Keys {
			if err := t.rangeDel(span.Start, span.End, uint64(k.SeqNum())); err != nil {
				return fromCallback{err}
			}
		}
	}
	return err
}

// points walks the blocks. After a damaged one it goes on behind the block's
// separator. Older versions of a key that is the separator are left out with it:
// they must not show in place of what is lost.
func (t *tableReader) points(name string) error {
	separators, err := guarded(t.readSeparators)
	if err != nil {
		t.lost = append(t.lost, fmt.Sprintf("%s: a part of its index: %v", name, err))
		return t.bothEnds(name)
	}
	t.separators = separators
	var from []byte
	for block := 0; ; {
		last, err := t.walk(from)
		var ours fromCallback
		switch {
		case err == nil:
			return nil
		case errors.As(err, &ours):
			return ours.error
		}
		if last != nil { // the block behind last's is the one that failed
			for block < len(separators) && bytes.Compare(separators[block], last) < 0 {
				block++
			}
			block++
		}
		if block >= len(separators) {
			t.lost = append(t.lost, fmt.Sprintf("%s: its end: %v", name, err))
			return nil
		}
		t.lost = append(t.lost, fmt.Sprintf("%s: a block of keys up to %s: %v", name, shownKey(separators[block]), err))
		from = append(bytes.Clone(separators[block]), 0)
		block++
	}
}

// shownKey is a stored key for people.
func shownKey(stored []byte) string {
	if len(stored) == 0 {
		return plain("")
	}
	return plain(string(userKey(stored)))
}

// walk reads from a key on to the end, or to the first error. last is the last key
// that was read, nil if none was.
func (t *tableReader) walk(from []byte) (last []byte, err error) {
	defer recovered(&err)
	it, err := t.r.NewIter(sstable.NoTransforms, nil, nil, sstable.TableBlobContext{})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	kv := it.First()
	if from != nil {
		kv = it.SeekGE(from, 0)
	}
	for ; kv != nil; kv = it.Next() {
		v, _, err := kv.Value(nil)
		if err != nil {
			return last, err
		}
		if err := t.point(kv.K, v); err != nil {
			return last, fromCallback{err}
		}
		last = append(last[:0], kv.K.UserKey...)
	}
	return last, it.Error()
}

// bothEnds reads a table whose blocks are not known: forward from its beginning to
// the first error, and backward from its end.
func (t *tableReader) bothEnds(name string) error {
	last, err := t.walk(nil)
	var ours fromCallback
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ours):
		return ours.error
	}
	first, err := t.walkBack(last)
	if errors.As(err, &ours) {
		return ours.error
	}
	t.lost = append(t.lost, fmt.Sprintf("%s: keys between %s and %s", name, shownKey(last), shownKey(first)))
	return nil
}

// walkBack reads backward from the end to a key, or to the first error.
func (t *tableReader) walkBack(to []byte) (first []byte, err error) {
	defer recovered(&err)
	it, err := t.r.NewIter(sstable.NoTransforms, nil, nil, sstable.TableBlobContext{})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	for kv := it.Last(); kv != nil && (to == nil || bytes.Compare(kv.K.UserKey, to) > 0); kv = it.Prev() {
		v, _, err := kv.Value(nil)
		if err != nil {
			return first, err
		}
		if err := t.point(kv.K, v); err != nil {
			return first, fromCallback{err}
		}
		first = append(first[:0], kv.K.UserKey...)
	}
	return first, it.Error()
}

// readSeparators reads the index.
func (t *tableReader) readSeparators() (separators [][]byte, err error) {
	format, err := t.r.TableFormat()
	if err != nil {
		return nil, err
	}
	if !format.BlockColumnar() {
		return nil, fmt.Errorf("its format %v is not this program's", format)
	}
	layout, err := t.r.Layout()
	if err != nil {
		return nil, err
	}
	for _, h := range layout.Index {
		b, err := t.r.BlockReader().Read(context.Background(), block.NoReadEnv, nil, h, blockkind.Index, colblk.InitIndexBlockMetadata)
		if err != nil {
			return nil, err
		}
		var it colblk.IndexIter
		if err := it.Init(t.r.Comparer, b.BlockData(), block.NoTransforms); err != nil {
			b.Release()
			return nil, err
		}
		for ok := it.First(); ok; ok = it.Next() {
			separators = append(separators, bytes.Clone(it.Separator()))
		}
		b.Release()
	}
	return separators, nil
}
