package couch

import (
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"scanode/storage"
)

// These tests are about disks without room. Their oracle is a map of the rows, and which
// files there are.

// TestCompactionGivesRoomBack: a compaction that finds no room leaves nothing of its own,
// lest the store's next write find none either, and another can be done.
func TestCompactionGivesRoomBack(t *testing.T) {
	t.Parallel()
	mem, steps := newMem(t), &stepper{}
	s := openIn(t, errorfs.Wrap(mem, steps))
	rows := map[string]string{}
	fill(t, s, rows, 2000, newRand(t))
	writes := 0
	steps.set(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWriteAt && strings.HasSuffix(op.Path, compactName) {
			if writes++; writes > 1 { // the first header fits
				return syscall.ENOSPC
			}
		}
		return nil
	})
	<-s.compact().done
	steps.set(nil)
	if n := s.compactor.failures.Load(); n != 1 || writes < 2 {
		t.Fatalf("%d failed after %d writes", n, writes)
	}
	if _, err := mem.Stat("/data/" + compactName); !isNotExist(err) {
		t.Fatalf("what was copied is left: %v", err)
	}
	fill(t, s, rows, 100, newRand(t))
	<-s.compact().done
	if n := settle(s); n != 1 {
		t.Fatalf("%d compactions", n)
	}
	wantRows(t, s, rows)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestOpenWithoutRoom: where what an interrupted compaction has copied takes the room that a
// store needs to open, it is given up.
func TestOpenWithoutRoom(t *testing.T) {
	t.Parallel()
	mem, steps := newMem(t), &stepper{}
	s := openIn(t, errorfs.Wrap(mem, steps))
	rows := map[string]string{}
	rng := newRand(t)
	fill(t, s, rows, 2000, rng)
	rows["in the log"] = "1"
	if err := s.Apply([]storage.Op{{Key: []byte("in the log"), Value: []byte("1")}}, true); err != nil {
		t.Fatal(err)
	}
	// The program is killed while the compaction copies.
	var killed *vfs.MemFS
	steps.set(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWriteAt && strings.HasSuffix(op.Path, compactName) && killed == nil {
			killed = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng})
		}
		return nil
	})
	<-s.compact().done
	steps.set(nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	refused := 0
	full := &stepper{step: func(op errorfs.Op) error {
		_, err := killed.Stat("/data/" + compactName)
		if op.Kind == errorfs.OpFileWriteAt && strings.HasSuffix(op.Path, fileName) && err == nil {
			refused++
			return syscall.ENOSPC
		}
		return nil
	}}
	if _, err := killed.Stat("/data/" + compactName); err != nil {
		t.Fatal(err)
	}
	s = openIn(t, errorfs.Wrap(killed, full))
	wantRows(t, s, rows)
	if refused != 1 {
		t.Fatalf("%d writes found no room", refused)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
