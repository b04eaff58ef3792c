package couch

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
	"scanode/storage/home"
)

// Name is the engine's name in markers, options and Stats.
const Name = "couch"

// Config is what the stores of one process share. The zero value works.
type Config struct {
	// FS is the file system; nil means the operating system's.
	FS vfs.FS
	// Logger receives the engine's log lines, from any goroutine and with locks of the
	// engine held: it must return soon and call nothing of this package. nil discards
	// them.
	Logger func(level slog.Level, msg string)
}

// Engine opens stores of the append-only B+tree. It is used from any number of
// goroutines.
type Engine struct {
	fs   vfs.FS
	log  func(slog.Level, string)
	open home.Book

	turns chan struct{} // one for each compaction that runs
}

var _ storage.Engine = (*Engine)(nil)

// New returns an engine.
func New(c Config) *Engine {
	if c.FS == nil {
		c.FS = vfs.Default
	}
	if c.Logger == nil {
		c.Logger = func(slog.Level, string) {}
	}
	return &Engine{fs: c.FS, log: c.Logger, turns: make(chan struct{}, maxCompactions)}
}

// Open opens or creates the store in dir. See storage.Engine, and defaultSettings for the
// options.
func (e *Engine) Open(dir string, o storage.Options) (storage.Store, error) {
	set, err := parseSettings(o.Engine)
	if err != nil {
		return nil, failed(err)
	}
	dir = filepath.Clean(dir)
	s, err := e.openDir(dir, set, o)
	if err != nil {
		return nil, failedf("open %s: %w", dir, bare(err))
	}
	return s, nil
}

func (e *Engine) openDir(dir string, set settings, o storage.Options) (*store, error) {
	if _, err := e.permit(dir, o); err != nil {
		return nil, err
	}
	if err := home.NotInside(e.fs, dir); err != nil {
		return nil, err
	}
	if o.CreateIfMissing {
		if err := home.MakeDir(e.fs, dir); err != nil {
			return nil, err
		}
	}
	dir, err := e.open.Enter(e.fs, dir)
	if err != nil {
		return nil, err
	}
	s := newStore(e, dir, set)
	if err := s.start(o); err != nil {
		s.state.Store(stateClosed)
		return nil, errors.Join(err, s.release())
	}
	if _, err := e.fs.Stat(s.path(compactName)); err == nil {
		s.compact() // which was interrupted
	}
	return s, nil
}

// permit finds out what is in dir and whether the options allow to open it.
func (e *Engine) permit(dir string, o storage.Options) (place, error) {
	p, err := look(e.fs, dir)
	switch {
	case err != nil:
	case p == placeStore && o.ErrorIfExists:
		err = storage.ErrExists
	case p == placeMissing && !o.CreateIfMissing:
		err = storage.ErrMissing
	}
	return p, err
}

// start locks the directory of s and opens its file. On an error release cleans up.
func (s *store) start(o storage.Options) error {
	e := s.engine
	var err error
	if s.lock, err = home.Lock(e.fs, s.dir); err != nil {
		return err
	}
	if err := resume(e.fs, s.dir); err != nil {
		return err
	}
	// Another process may have been faster than the lock.
	p, err := e.permit(s.dir, o)
	if err == nil && p == placeMissing {
		err = createFile(e.fs, s.dir)
	}
	if err != nil {
		return err
	}
	err = s.startFile()
	// Once it has started, a compaction may be at the writer already.
	if w := &s.writer; err != nil && vfs.IsNoSpaceError(err) && w.gen != nil && e.fs.Remove(s.path(compactName)) == nil {
		// What an interrupted compaction has copied took the room. It can be done again.
		w.gen.release()
		err = s.startFile()
	}
	return err
}

// startFile opens the file of s and brings back what is in its log.
func (s *store) startFile() error {
	f, err := file.Open(s.engine.fs, s.path(fileName), fileOptions)
	if err != nil {
		return lockedOrCorrupt(err)
	}
	g := s.newGeneration(&generation{file: f})
	at, h, err := lastHeader(f)
	if err != nil {
		return err
	}
	g.id = h.id
	w := &s.writer
	w.use(g, h.root)
	w.header, w.mayLog, w.over = at, h.log, newOverlay()
	if s.set.paranoid {
		if _, err := w.tree.Verify(btree.Check{Limit: at.Ptr, Separators: true}); err != nil {
			return corrupt(err)
		}
	}
	w.seq, _, err = replay(f, at, h.seq, func(ops []entry, size int64) error {
		w.over.set(ops, size)
		return nil
	})
	if err != nil {
		return err
	}
	// A log goes on right behind its header, so whatever is there gets a new one. So does
	// a file whose header says that no log is behind it.
	if f.Size() > at.Ptr+at.Size || s.set.log && !h.log {
		if err := w.commit(s.set.log); err != nil {
			return err
		}
	}
	w.publish()
	return nil
}

// lockedOrCorrupt makes an error of the contract's of one of opening a file of a store.
func lockedOrCorrupt(err error) error {
	if errors.Is(err, file.ErrLocked) {
		return fmt.Errorf("%w: %w", storage.ErrLocked, err)
	}
	if isNotExist(err) {
		return fmt.Errorf("%w: %w", storage.ErrCorrupt, err)
	}
	return corrupt(err)
}
