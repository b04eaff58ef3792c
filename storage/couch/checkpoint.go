package couch

import (
	"errors"

	"scanode/storage"
	"scanode/storage/couch/btree"
	"scanode/storage/home"
)

// Checkpoint implements storage.Store. The copy is as dense as after a compaction. It is
// made beside reads and writes; only the sync in front of it takes its turn with them. The
// marker comes last, so that a copy cut short is no store.
func (s *store) Checkpoint(dir string) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	fs := s.engine.fs
	if _, err := fs.Stat(dir); err == nil {
		return failedf("checkpoint %s: %w", dir, storage.ErrExists)
	}
	if err := home.NotInside(fs, dir); err != nil {
		return failedf("checkpoint %s: %w", dir, err)
	}
	if err := s.submit(&request{sync: true}); err != nil {
		return err
	}
	v := s.acquire()
	defer v.gen.release()
	if err := s.copyTo(dir, v); err != nil {
		_ = fs.RemoveAll(dir)
		return failedf("checkpoint %s: %w", dir, bare(s.readError(err)))
	}
	return nil
}

func (s *store) copyTo(dir string, v *version) error {
	fs := s.engine.fs
	if err := home.MakeDir(fs, dir); err != nil {
		return err
	}
	h := header{id: newID()}
	f, err := createEmpty(fs, fs.PathJoin(dir, newName), h)
	if err != nil {
		return err
	}
	var tree btree.Tree
	if tree, err = build(btree.New(f, btree.Pointer{}, s.set.treeOptions(nil)), v); err == nil {
		h.root = tree.Root()
		_, err = f.Commit(h.append(nil))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := home.WriteMarker(fs, dir, Name, format, ""); err != nil {
		return err
	}
	return install(fs, dir)
}

// build adds all rows of a version to a tree without rows.
func build(tree btree.Tree, v *version) (btree.Tree, error) {
	b, err := tree.Builder()
	if err != nil {
		return tree, err
	}
	defer b.Discard()
	it := newIter(nil, v, storage.Range{})
	for ok := it.First(); ok; ok = it.Next() {
		if err := b.Add(it.encoded()); err != nil {
			return tree, err
		}
	}
	if it.err != nil {
		return tree, it.err
	}
	return b.Tree()
}
