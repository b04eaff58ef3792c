package lsm

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
)

// crashedDisk is the disk of a process that died after n rows of 300 bytes,
// all synced, and one row that was not. With power false it also keeps what was
// not synced. again says that the store was opened a second time before the
// rows were written: the log of a new store has chunks without promises.
func crashedDisk(t *testing.T, n int, again, power bool) *vfs.MemFS {
	mem := vfs.NewCrashableMem()
	e := engine(t, mem)
	if again {
		if err := openIn(t, e, "/db").Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := openIn(t, e, "/db")
	for i := range n {
		if err := s.Apply(put(fmt.Sprintf("%06d", i), strings.Repeat("v", 300)), true); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Apply(put("unsynced", "v"), false); err != nil {
		t.Fatal(err)
	}
	percent := 100
	if power {
		percent = 0
	}
	disk := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: newRand(1)})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return disk
}

// lastLog returns the newest log in /db.
func lastLog(t *testing.T, fs vfs.FS) string {
	logs, err := listLogs(fs, "/db")
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	return "/db/" + logName(logs[len(logs)-1])
}

// openCopy opens /db of a disk and counts its rows.
func openCopy(t *testing.T, fs vfs.FS) (rows int, err error) {
	e := New(Config{FS: fs, CacheBytes: 1 << 20})
	defer e.Close()
	s, err := e.Open("/db", storage.Options{Engine: smallBuffers})
	if err != nil {
		return 0, err
	}
	it, err := s.NewIter(storage.Range{})
	if err == nil {
		for ok := it.First(); ok; ok = it.Next() {
			rows++
		}
		err = it.Close()
	}
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	return rows, err
}

// scribbleOn writes eight bytes over a file.
func scribbleOn(t *testing.T, fs vfs.FS, path string, at int64) {
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("XXXXXXXX"), at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedLog damages every region of the log of a process that died: what
// was synced is there, or the open is an error.
func TestDamagedLog(t *testing.T) {
	const n = 110
	for _, again := range []bool{false, true} {
		disk := crashedDisk(t, n, again, false)
		log := lastLog(t, disk)
		synced := parseSynced(contents(t, disk, "/db/"+syncedName)).log.size
		if synced < n*300 {
			t.Fatalf("%d bytes are said to be synced", synced)
		}
		outcome := map[string]int{}
		try := func(what string, change func(fs vfs.FS)) {
			t.Helper()
			fs := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: newRand(1)})
			change(fs)
			switch rows, err := openCopy(t, fs); {
			case err == nil && rows < n:
				t.Errorf("again=%v, %s: %d rows of %d and no error", again, what, rows, n)
			case err == nil:
				outcome["every synced row"]++
			case !errors.Is(err, storage.ErrCorrupt):
				t.Errorf("again=%v, %s: %v", again, what, err)
			default:
				outcome["error"]++
			}
		}
		for at := int64(0); at < synced; at += 97 {
			try(fmt.Sprintf("bytes at %d", at), func(fs vfs.FS) { scribbleOn(t, fs, log, at) })
		}
		for bit := int64(0); bit < synced*8; bit += 1009 {
			try(fmt.Sprintf("bit %d", bit), func(fs vfs.FS) { flip(t, fs, log, bit) })
		}
		for bit := int64(0); bit < 8*40; bit++ { // the first header
			try(fmt.Sprintf("bit %d", bit), func(fs vfs.FS) { flip(t, fs, log, bit) })
		}
		for cut := int64(0); cut < synced; cut += 1013 {
			try(fmt.Sprintf("cut at %d", cut), func(fs vfs.FS) { truncate(t, fs, log, cut, 0) })
		}
		try("no log", func(fs vfs.FS) { _ = fs.Remove(log) })
		if outcome["every synced row"] > 0 {
			t.Errorf("damage to synced rows was not noticed: %v", outcome)
		}
		// What was not synced may be torn.
		fs := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: newRand(1)})
		truncate(t, fs, log, synced, 100)
		if rows, err := openCopy(t, fs); rows != n || err != nil {
			t.Errorf("again=%v, torn behind what was synced: %d rows, %v", again, rows, err)
		}
		// Without SYNCED the promises within the log are left.
		fs = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: newRand(1)})
		scribbleOn(t, fs, log, 5000)
		_ = fs.Remove("/db/" + syncedName)
		if _, err := openCopy(t, fs); again != errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("again=%v, no %s: %v", again, syncedName, err)
		}
	}
}

// TestPowerLossIsNoDamage: what loss of power leaves always opens, with every
// synced row.
func TestPowerLossIsNoDamage(t *testing.T) {
	for _, again := range []bool{false, true} {
		if rows, err := openCopy(t, crashedDisk(t, 110, again, true)); rows < 110 || err != nil {
			t.Errorf("again=%v: %d rows, %v", again, rows, err)
		}
	}
}

// TestDamageAfterClose damages what a clean close leaves.
func TestDamageAfterClose(t *testing.T) {
	t.Parallel()
	const n = 50
	mem := vfs.NewCrashableMem()
	s := openIn(t, engine(t, mem), "/db")
	for i := range n {
		if err := s.Apply(put(fmt.Sprintf("%06d", i), strings.Repeat("v", 300)), true); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := mem.List("/db")
	if err != nil {
		t.Fatal(err)
	}
	logs := 0
	for _, name := range names {
		size := sizeOf(t, mem, "/db/"+name)
		if strings.HasSuffix(name, ".log") {
			if logs++; size > 100 {
				t.Errorf("%s has %d bytes after close", name, size)
			}
		}
		for at := int64(0); at < size; at += 23 {
			fs := mem.CrashClone(vfs.CrashCloneCfg{})
			scribbleOn(t, fs, "/db/"+name, at)
			if rows, err := openCopy(t, fs); err == nil && rows != n {
				t.Fatalf("%s, bytes at %d: %d rows of %d and no error", name, at, rows, n)
			} else if err != nil && (strings.Contains(err.Error(), "carrier") || strings.Count(err.Error(), "lsm: ") != 1) {
				t.Errorf("%q", err)
			}
		}
	}
	if logs != 1 {
		t.Errorf("%d logs after close: %q", logs, names)
	}
}

// TestSmallAfterClose: a store of three rows takes little of a real disk once it
// is closed, and Stats count what it takes while it is open.
func TestSmallAfterClose(t *testing.T) {
	dir := t.TempDir()
	e := engine(t, nil)
	st, err := e.Open(dir, storage.Options{CreateIfMissing: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := st.Apply(put(fmt.Sprint(i), "v"), true); err != nil {
			t.Fatal(err)
		}
	}
	s := st.(*store)
	stats, err := s.Stats()
	if err != nil || stats.DiskBytes != s.diskBytes() || stats.DiskBytes == 0 {
		t.Fatal(stats.DiskBytes, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := s.diskBytes(); n > 256<<10 {
		t.Fatalf("%d bytes after close, %d before", n, stats.DiskBytes)
	}
	t.Logf("%d bytes after close, %d before", s.diskBytes(), stats.DiskBytes)
}

// TestCloseWithoutFlush: a flush that fails does not fail Close, for everything
// is in the log.
func TestCloseWithoutFlush(t *testing.T) {
	mem := vfs.NewCrashableMem()
	inj := &injector{}
	s := openIn(t, engine(t, wrapFaults(mem, inj)), "/db")
	if err := s.Apply(put("k", "v"), false); err != nil {
		t.Fatal(err)
	}
	inj.arm(failTables)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	disk := mem.CrashClone(vfs.CrashCloneCfg{})
	if rows, err := openCopy(t, disk); rows != 1 || err != nil {
		t.Fatalf("%d rows, %v", rows, err)
	}
}

// FuzzLog writes a log as pebble does and damages a byte below what was synced:
// that is noticed, and the undamaged log is good to its end.
func FuzzLog(f *testing.F) {
	f.Add([]byte("one"), []byte("two"), uint16(3), uint32(5))
	f.Add([]byte(""), bytes.Repeat([]byte{5, 0, 0, 0}, 20000), uint16(1), uint32(40000))
	f.Fuzz(func(t *testing.T, a, b []byte, num uint16, where uint32) {
		fs := vfs.NewMem()
		file, err := fs.Create("000001.log", vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		var ends []int64
		w := record.NewLogWriter(file, 1, record.LogWriterConfig{WriteWALSyncOffsets: func() bool { return num%2 == 0 }})
		for _, r := range [][]byte{a, b} {
			end, err := w.WriteRecord(r)
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		size := sizeOf(t, fs, "000001.log")
		for _, last := range []bool{false, true} {
			if err := checkLog(fs, "000001.log", 1, size, last); err != nil {
				t.Fatal(err)
			}
		}
		at := int64(where) % ends[1]
		if at%recordBlock >= recordBlock-logSyncHeader {
			return // unused, perhaps
		}
		flip(t, fs, "000001.log", at*8+int64(num%8))
		if err := checkLog(fs, "000001.log", 1, ends[1], true); !errors.Is(err, storage.ErrCorrupt) {
			t.Fatalf("byte %d of %d: %v", at, ends[1], err)
		}
	})
}

// FuzzSynced: what is believed was written.
func FuzzSynced(f *testing.F) {
	f.Add([]byte("short"))
	f.Add(synced{mark{1, 2}, mark{3, 4}}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		s := parseSynced(b)
		if s != (synced{}) && !bytes.Equal(s.encode(), b) {
			t.Fatalf("%+v is not %x", s, b)
		}
	})
}
