package couch

import (
	"errors"
	"fmt"
	"path/filepath"

	"scanode/storage"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
	"scanode/storage/home"
)

// Repair implements storage.Engine. The rows are those that the newest header leads to
// whose root can be read, as far as its nodes can be, with what is in the log behind it.
func (e *Engine) Repair(dir string) (storage.Repaired, error) {
	dir = filepath.Clean(dir)
	var done storage.Repaired
	err := func() error {
		// A marker that cannot be read is no hindrance: the file says whose it is.
		if p, err := look(e.fs, dir); err != nil && !errors.Is(err, storage.ErrCorrupt) || err == nil && p == placeMissing {
			return err
		}
		return e.withLock(dir, func(dir string) (err error) {
			done, err = e.repair(dir)
			return err
		}, nil)
	}()
	if err != nil {
		return storage.Repaired{}, failedf("repair %s: %w", dir, bare(err))
	}
	return done, nil
}

func (e *Engine) repair(dir string) (storage.Repaired, error) {
	old, err := file.Open(e.fs, e.fs.PathJoin(dir, fileName), fileOptions)
	if err != nil && !errors.Is(err, file.ErrHeaderTerm) {
		return storage.Repaired{}, lockedOrCorrupt(err)
	}
	if err != nil {
		if old, err = file.OpenReadOnly(e.fs, e.fs.PathJoin(dir, fileName), fileOptions); err != nil {
			return storage.Repaired{}, err
		}
	}
	defer old.Close()
	fresh, err := createEmpty(e.fs, e.fs.PathJoin(dir, newName), header{id: newID()})
	if err != nil {
		return storage.Repaired{}, err
	}
	set := defaultSettings()
	r := rescue{old: old, set: &set}
	r.tree = btree.New(fresh, btree.Pointer{}, set.treeOptions(btree.NewCache(int(set.cacheBytes))))
	rows, err := r.run()
	if err == nil {
		h := header{id: newID(), seq: r.seq, root: r.tree.Root()}
		_, err = fresh.Commit(h.append(nil))
	}
	if err = errors.Join(err, fresh.Close()); err != nil {
		return storage.Repaired{}, errors.Join(err, e.fs.Remove(e.fs.PathJoin(dir, newName)))
	}
	aside, err := e.putAside(dir)
	if err != nil {
		return storage.Repaired{}, err
	}
	if err := home.WriteMarker(e.fs, dir, Name, format, ""); err != nil {
		return storage.Repaired{}, err
	}
	if err := install(e.fs, dir); err != nil {
		return storage.Repaired{}, err
	}
	return storage.Repaired{Rows: rows, Lost: r.lost, Aside: aside}, nil
}

// putAside moves the file of the store into a directory of its own, durably.
func (e *Engine) putAside(dir string) (aside string, err error) {
	for n := 1; ; n++ {
		aside = e.fs.PathJoin(dir, fmt.Sprintf("%s%d", asidePrefix, n))
		if _, err := e.fs.Stat(aside); isNotExist(err) {
			break
		} else if err != nil {
			return "", err
		}
	}
	if err := home.MakeDir(e.fs, aside); err != nil {
		return "", err
	}
	if err := e.fs.Rename(e.fs.PathJoin(dir, fileName), e.fs.PathJoin(aside, fileName)); err != nil {
		return "", err
	}
	// The new place first: a loss of power may leave the file at both, not at none.
	if err := home.SyncDir(e.fs, aside); err != nil {
		return "", err
	}
	return aside, home.SyncDir(e.fs, dir)
}

// rescue reads what can be read of a file and puts it into tree.
type rescue struct {
	old  *file.File
	set  *settings
	tree btree.Tree
	seq  int64
	lost []string
}

// maxLost bounds how much of what was lost is told one by one.
const maxLost = 1000

func (r *rescue) lose(format string, args ...any) {
	switch {
	case len(r.lost) < maxLost:
		r.lost = append(r.lost, fmt.Sprintf(format, args...))
	case len(r.lost) == maxLost:
		r.lost = append(r.lost, "and more")
	}
}

// run returns how many rows there are in the end. Errors wrap ErrCorrupt when no header
// leads to rows.
func (r *rescue) run() (int64, error) {
	found := false
	for at, err := range r.old.Headers(r.old.Size()) {
		var h header
		if err == nil {
			h, err = readHeader(at.Term)
		}
		if errors.Is(err, storage.ErrForeign) {
			return 0, err
		}
		if err != nil && !errors.Is(corrupt(err), storage.ErrCorrupt) {
			return 0, err
		}
		if err != nil {
			r.lose("a header: %v", err)
			continue
		}
		ok, err := r.rows(h)
		if err != nil {
			return 0, err
		}
		if !ok {
			continue
		}
		found = true
		// Batches behind a newer header than this one count as well, but those in
		// between are lost; that the newer header was lost says so.
		if err := r.log(at, h); err != nil {
			return 0, err
		}
		break
	}
	if !found {
		return 0, fmt.Errorf("%w: no header leads to rows", storage.ErrCorrupt)
	}
	red, err := r.tree.FullReduce()
	if err != nil {
		return 0, err
	}
	reader := termReader{b: red}
	return reader.integer(), reader.err
}

// rows adds the rows that a header leads to. It returns false when not even the root can
// be read.
func (r *rescue) rows(h header) (bool, error) {
	old := btree.New(r.old, h.root, r.set.treeOptions(nil))
	l := loader{tree: r.tree}
	nodes := 0
	r.seq = h.seq
	var failed error // of writing
	_, err := old.Verify(btree.Check{
		Separators: true,
		Visit: func(v btree.Visit) error {
			nodes++
			if !v.Leaf {
				return nil
			}
			for _, row := range v.Rows {
				if _, err := userBytes(row.Key); err != nil {
					r.lose("row in the node at %d: %v", v.Ptr, err)
					continue
				}
				if failed = l.add(row.Key, row.Value); failed != nil {
					return failed
				}
			}
			return nil
		},
		Fault: func(e *btree.Error) error {
			if !errors.Is(corrupt(e), storage.ErrCorrupt) {
				return e // of the disk, which may be better tomorrow
			}
			r.lose("%v", e)
			return nil
		},
	})
	if err == nil {
		err = l.flush()
	}
	r.tree = l.tree
	return nodes > 0 || h.root.IsNil(), err
}

// log adds what is in the log behind a header.
func (r *rescue) log(at file.Header, h header) error {
	seq, bytes, err := replay(r.old, at, h.seq, func(ops []entry, _ int64) error {
		over := newOverlay() // of equal keys the last counts
		over.set(ops, 0)
		var err error
		r.tree, err = over.addTo(r.tree)
		return err
	})
	r.seq = seq
	if end := at.Ptr + at.Size + bytes; err == nil && h.log && r.old.Size() > end {
		r.lose("%d bytes behind the log of the header at %d, if they were acknowledged", r.old.Size()-end, at.Ptr)
	}
	return err
}
