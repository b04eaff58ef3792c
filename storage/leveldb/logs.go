package leveldb

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// logRows are the writes of all logs, sorted: what LevelDB would have in memory. It is
// a cursor once it is sorted.
type logRows struct {
	rows  []write
	arena []byte // room that keys and values are copied to
	at    int    // of the current one
}

// arenaBytes is how much room is taken at once.
const arenaBytes = 1 << 20

func (l *logRows) copy(b []byte) []byte {
	if len(l.arena)+len(b) > cap(l.arena) {
		l.arena = make([]byte, 0, max(arenaBytes, len(b)))
	}
	start := len(l.arena)
	l.arena = append(l.arena, b...)
	return l.arena[start:len(l.arena):len(l.arena)]
}

func (l *logRows) add(w write) {
	w.key.user, w.value = l.copy(w.key.user), l.copy(w.value)
	l.rows = append(l.rows, w)
}

func (l *logRows) sort() {
	slices.SortFunc(l.rows, func(a, b write) int { return a.key.compare(&b.key) })
	l.at = -1
}

func (l *logRows) next() (bool, error) {
	l.at++
	return l.at < len(l.rows), nil
}

func (l *logRows) seekAfter(key []byte) {
	for l.at+1 < len(l.rows) && bytes.Compare(l.rows[l.at+1].key.user, key) <= 0 {
		l.at++
	}
}

func (l *logRows) entry() (*internalKey, []byte) { return &l.rows[l.at].key, l.rows[l.at].value }

func (l *logRows) close() error { return nil }

// replay reads a log. Where it ends too soon, as a crash leaves it, that is the end, as
// it is for LevelDB; and so is damage in the newest log that nothing readable follows,
// for loss of power leaves that. Other damage is for tolerate.
func (s *Store) replay(l *logRows, name string, newest bool) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	err = s.replayRecords(l, newRecords(name, bufio.NewReaderSize(f, windowBytes)), newest)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func (s *Store) replayRecords(l *logRows, r *records, newest bool) error {
	var bad []*Damage // since the last record that could be read
	for {
		record, at, err := r.next()
		var d *Damage
		switch {
		case err == io.EOF:
			return s.endOfLog(r, bad, newest)
		case errors.As(err, &d):
			bad = append(bad, d)
			continue
		case err != nil:
			return fmt.Errorf("%s: %w", r.file, err)
		}
		if err := s.tolerateAll(bad); err != nil {
			return err
		}
		bad = nil
		if err := readBatch(record, l.add); err != nil {
			if err := s.tolerate(damage(r.file, at, "%v", err)); err != nil {
				return err
			}
		}
	}
}

func (s *Store) endOfLog(r *records, bad []*Damage, newest bool) error {
	if len(bad) > 0 && newest && !r.followed {
		s.info.Torn = append(s.info.Torn, bad[0].Error())
		return nil
	}
	if err := s.tolerateAll(bad); err != nil {
		return err
	}
	if r.torn {
		s.info.Torn = append(s.info.Torn, damage(r.file, r.tornAt, "the log ends within a record").Error())
	}
	return nil
}

func (s *Store) tolerateAll(bad []*Damage) error {
	for _, d := range bad {
		if err := s.tolerate(d); err != nil {
			return err
		}
	}
	return nil
}
