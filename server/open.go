package server

import (
	"sort"
	"strings"
	"unicode/utf8"

	"scanode/etf"
	"scanode/etf/etftext"
	"scanode/storage"
)

// defaultOrphanMs is how long an unused store outlives its opener.
const defaultOrphanMs = 10 * 60 * 1000

// maxDirBytes bounds the name of a directory.
const maxDirBytes = 4096

// open answers {open, Dir, Opts}.
func (c *call) open() {
	id, err := c.openStore()
	if err != nil {
		c.fail(err)
		return
	}
	reply := etf.AppendAtom(etf.AppendTupleHeader(c.begin(16), 2), "ok")
	c.send(etf.AppendInt64(reply, id))
}

func (c *call) openStore() (int64, error) {
	s := c.link.s
	name, err := readDir(c.arg())
	if err != nil {
		return 0, err
	}
	o := newOptions(c.arg())
	opts := storage.Options{CreateIfMissing: o.bool("create_if_missing", true), ErrorIfExists: o.bool("error_if_exists", false)}
	orphan := o.orphan()
	engine := s.cfg.Engines[o.atom("engine", "lsm", s.engineNames()...)]
	opts.Engine = o.engine()
	if err := o.done(); err != nil {
		return 0, err
	}
	dir, err := s.cfg.Resolve(name)
	if err != nil {
		return 0, reasonf(tagBadPath, "%s: %v", name, err)
	}
	st := newStore(s, dir, c.link, orphan)
	if err := s.reserve(dir); err != nil {
		return 0, err
	}
	if st.db, err = engine.Open(dir, opts); err != nil {
		s.settle(dir, nil)
		return 0, err
	}
	if !s.settle(dir, st) {
		_ = st.db.Close()
		return 0, errClosed
	}
	st.lease.watch(c.link.peer, c.to.pid)
	s.log.Info("store opened", "dir", dir, "peer", c.link.peer.Node())
	return st.id, nil
}

func (s *Server) engineNames() []string {
	var names []string
	for name := range s.cfg.Engines {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// reserve makes dir ours to open: it closes a store there whose opener is dead,
// waits for one that is being closed, and refuses one that is in use. After it
// settle must be called.
func (s *Server) reserve(dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.closed {
			return errClosed
		}
		st, taken := s.dirs[dir]
		if !taken {
			break
		}
		switch {
		case st == nil:
			return reasonf(tagLocked, "%s is in use by another request", dir)
		case st.lease.isOrphaned():
			s.mu.Unlock()
			s.closeAll([]*store{st}, "its opener is dead and its directory is opened anew")
			s.mu.Lock()
		case !st.isClosing():
			return reasonf(tagLocked, "%s is open already, by a process of %s", dir, st.link.peer.Node())
		}
		if s.dirs[dir] == st {
			s.change.Wait()
		}
	}
	if len(s.dirs) >= s.cfg.Limits.Stores {
		return errBusy
	}
	s.dirs[dir] = nil
	return nil
}

// settle fills a reservation with the store, or gives it up if st is nil or the
// server was closed meanwhile. It reports whether the store is in.
func (s *Server) settle(dir string, st *store) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.change.Broadcast()
	if st == nil || s.closed {
		delete(s.dirs, dir)
		return false
	}
	st.id = s.newID()
	s.stores[st.id] = st
	s.dirs[dir] = st
	return true
}

// readDir reads the name of a directory: a binary, or a string of code points.
func readDir(b []byte) (string, error) {
	t, _, err := etf.Decode(b, etf.DefaultLimits)
	if err != nil {
		return "", reasonf(tagBadRequest, "directory: %v", err)
	}
	var name strings.Builder
	switch t := t.(type) {
	case []byte:
		name.Write(t)
	case etf.List:
		for _, e := range t {
			c, ok := e.(int64)
			if !ok || c < 0 || c > utf8.MaxRune {
				return "", reasonf(tagBadRequest, "a directory must be a binary or a string, got %s", etftext.Format(t))
			}
			name.WriteRune(rune(c))
		}
	default:
		return "", reasonf(tagBadRequest, "a directory must be a binary or a string, got %s", etftext.Format(t))
	}
	dir := name.String()
	if dir == "" || len(dir) > maxDirBytes || strings.ContainsRune(dir, 0) || !utf8.ValidString(dir) {
		return "", reasonf(tagBadRequest, "a directory's name must be 1 to %d bytes of UTF-8 without NUL, got %s", maxDirBytes, etftext.FormatBytes(b))
	}
	return dir, nil
}

// close answers {close, Id}, of a store, a snapshot or an iterator.
func (c *call) close() {
	id, _, err := readIDAndRest(c.arg())
	if err != nil {
		c.fail(err)
		return
	}
	v, err := c.link.s.acquireAny(id)
	if err != nil {
		c.fail(err)
		return
	}
	v.release()
	if v.handle != nil {
		err = v.handle.close()
	} else if err = v.close(); err == nil {
		c.link.s.log.Info("store closed", "dir", v.dir, "peer", c.link.peer.Node())
	}
	if err != nil {
		c.fail(err)
		return
	}
	c.ok()
}
