package transfer

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scanode/storage"
	"scanode/storage/dump"
	"scanode/storage/lsm"
)

// list is a source in memory.
type list struct {
	keys    []string
	rows    map[string]string
	seeks   bool // it can seek
	failAt  int  // Next fails at the row of this number; 0: never
	seen    int
	skipped int64
	at      int
	err     error
}

var errSource = errors.New("the source fails")

func newList(rows map[string]string) *list {
	return &list{keys: slices.Sorted(maps.Keys(rows)), rows: rows, seeks: true, at: -1}
}

func (l *list) SeekAfter(key []byte) bool {
	for l.seeks && l.at+1 < len(l.keys) && l.keys[l.at+1] <= string(key) {
		l.at++
	}
	return l.seeks
}

func (l *list) Next() bool {
	if l.seen++; l.seen == l.failAt {
		l.err = errSource
		return false
	}
	l.at++
	return l.at < len(l.keys)
}

func (l *list) Key() []byte     { return []byte(l.keys[l.at]) }
func (l *list) Value() []byte   { return []byte(l.rows[l.keys[l.at]]) }
func (l *list) Written() uint64 { return uint64(1000 + len(l.keys[l.at])) }
func (l *list) Skipped() int64  { return l.skipped }
func (l *list) Err() error      { return l.err }

// rowsOf are n rows, an empty key among them; some are larger than a batch.
func rowsOf(n int) map[string]string {
	rng := rand.New(rand.NewPCG(uint64(n), 0))
	rows := map[string]string{"": "empty"}
	for len(rows) < n {
		rows[fmt.Sprintf("%x", rng.Uint64())] = strings.Repeat("v", rng.IntN(1000))
	}
	rows["large"] = strings.Repeat("x", 2*batchBytes)
	return rows
}

func config(t *testing.T, l *list, target string) Config {
	e := lsm.New(lsm.Config{MemoryBytes: 128 << 20})
	t.Cleanup(e.Close)
	return Config{Source: l, Origin: "a list", Target: target, Engine: e, Name: lsm.Name, SyncBytes: 1}
}

// contents are the rows of the store in dir.
func contents(t *testing.T, e storage.Engine, dir string, options map[string]any) map[string]string {
	t.Helper()
	s, err := e.Open(dir, storage.Options{Engine: options})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	it, err := s.NewIter(storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for ok := it.First(); ok; ok = it.Next() {
		rows[string(it.Key())] = string(it.Value())
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestRun: the rows of the source are at the target, and nothing else is left.
func TestRun(t *testing.T) {
	for _, n := range []int{0, 1, 5000} {
		want := rowsOf(n)
		if n == 0 {
			want = nil
		}
		target := filepath.Join(t.TempDir(), "above", "store")
		c := config(t, newList(want), target)
		r, err := Run(c)
		if err != nil || r.Sum.Rows != int64(len(want)) || r.Resumed {
			t.Fatalf("%d rows: %+v, %v", len(want), r, err)
		}
		if got := contents(t, c.Engine, target, nil); !maps.Equal(got, want) {
			t.Errorf("%d rows, want %d", len(got), len(want))
		}
		if names, _ := os.ReadDir(filepath.Dir(target)); len(names) != 1 {
			t.Errorf("beside the target: %v", names)
		}
		if _, err := Run(c); !errors.Is(err, storage.ErrExists) {
			t.Errorf("once more: %v", err)
		}
	}
}

// TestResume: a source that fails over and over, at another row each time, is brought
// over by as many runs, whether it can seek or not; until the last there is no target.
func TestResume(t *testing.T) {
	want := rowsOf(6000)
	for _, seeks := range []bool{true, false} {
		target := filepath.Join(t.TempDir(), "store")
		runs, read := 0, 0
		for step := 1; ; step += 1777 {
			l := newList(want)
			if l.seeks = seeks; seeks {
				l.failAt = 1500
			} else {
				l.failAt = step
			}
			c := config(t, l, target)
			resumed := int64(-1)
			c.Resumed = func(_ time.Time, sum dump.Sum) { resumed = sum.Rows }
			r, err := Run(c)
			runs++
			read += l.seen
			if (runs > 1) != (resumed >= 0) {
				t.Fatalf("run %d: resumed behind %d", runs, resumed)
			}
			if err == nil {
				if !r.Resumed || r.Sum.Rows != int64(len(want)) {
					t.Errorf("%+v", r)
				}
				if got := contents(t, c.Engine, target, nil); !maps.Equal(got, want) {
					t.Errorf("%d rows, want %d", len(got), len(want))
				}
				break
			}
			if !errors.Is(err, errSource) {
				t.Fatal(err)
			}
			if _, err := os.Stat(target); err == nil {
				t.Fatal("there is a target that is not whole")
			}
			if _, err := c.Engine.Open(target, storage.Options{}); !errors.Is(err, storage.ErrMissing) {
				t.Fatalf("the target opens: %v", err)
			}
		}
		if runs < 3 {
			t.Errorf("%d runs", runs)
		}
		if seeks && read > len(want)+2*runs {
			t.Errorf("%d rows were read for %d", read, len(want))
		}
	}
}

// TestOther: a transfer of other rows, or into another kind of store, is not gone on
// with, but begun anew where that is asked for.
func TestOther(t *testing.T) {
	want := rowsOf(3000)
	target := filepath.Join(t.TempDir(), "store")
	l := newList(want)
	l.failAt = 2000
	c := config(t, l, target)
	if _, err := Run(c); !errors.Is(err, errSource) {
		t.Fatal(err)
	}
	other := map[string]string{"other": "rows"}
	for name, change := range map[string]func(c *Config){
		"origin":  func(c *Config) { c.Origin = "another list" },
		"engine":  func(c *Config) { c.Name = "couch" },
		"options": func(c *Config) { c.Options = map[string]any{"sst_block_size": int64(4096)} },
	} {
		c := config(t, newList(other), target)
		change(&c)
		if _, err := Run(c); !errors.Is(err, ErrOther) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c = config(t, newList(other), target)
	c.Origin, c.Restart = "another list", true
	if r, err := Run(c); err != nil || r.Resumed {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := contents(t, c.Engine, target, nil); !maps.Equal(got, other) {
		t.Errorf("%v", got)
	}
}

// TestChangedSource: a source that lost or changed rows between two runs, and does not
// tell by its name, is found out by the sum at the end.
func TestChangedSource(t *testing.T) {
	for name, change := range map[string]func(rows map[string]string, early string){
		"lost":    func(rows map[string]string, early string) { delete(rows, early) },
		"changed": func(rows map[string]string, early string) { rows[early] += "!" },
		"more":    func(rows map[string]string, early string) { rows[early+"!"] = "" },
	} {
		rows := rowsOf(3000)
		target := filepath.Join(t.TempDir(), "store")
		l := newList(rows)
		l.failAt, l.seeks = 2500, false
		if _, err := Run(config(t, l, target)); !errors.Is(err, errSource) {
			t.Fatal(err)
		}
		change(rows, l.keys[10])
		l = newList(rows)
		l.seeks = false
		if _, err := Run(config(t, l, target)); !errors.Is(err, ErrDiffers) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(target); err == nil {
			t.Errorf("%s: there is a target all the same", name)
		}
	}
}

// liar is an engine whose stores lose a row of each batch.
type liar struct{ storage.Engine }

func (l liar) Open(dir string, o storage.Options) (storage.Store, error) {
	s, err := l.Engine.Open(dir, o)
	return lossy{s}, err
}

type lossy struct{ storage.Store }

func (l lossy) Apply(ops []storage.Op, sync bool) error {
	return l.Store.Apply(ops[min(1, len(ops)):], sync)
}

// TestLossy: a store that did not keep what it was given is no target.
func TestLossy(t *testing.T) {
	target := filepath.Join(t.TempDir(), "store")
	c := config(t, newList(rowsOf(100)), target)
	c.Engine = liar{c.Engine}
	if _, err := Run(c); !errors.Is(err, ErrDiffers) {
		t.Fatal(err)
	}
	if _, err := os.Stat(target); err == nil {
		t.Error("there is a target all the same")
	}
}

// TestOrder: a source whose keys do not ascend is refused.
func TestOrder(t *testing.T) {
	for _, keys := range [][]string{{"a", "c", "b"}, {"a", "a"}, {"a", ""}} {
		l := newList(map[string]string{"a": "", "b": "", "c": "", "": ""})
		l.keys = keys
		if _, err := Run(config(t, l, filepath.Join(t.TempDir(), "store"))); !errors.Is(err, errOrder) {
			t.Errorf("%q: %v", keys, err)
		}
	}
}

// TestTargets: what is at the target stays as it is, and what no store can be put to is
// refused before anything is read.
func TestTargets(t *testing.T) {
	dir := t.TempDir()
	for name, make1 := range map[string]func(path string) error{
		"file":     func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
		"full":     func(path string) error { return os.MkdirAll(filepath.Join(path, "sub"), 0o700) },
		"dangling": func(path string) error { return os.Symlink(filepath.Join(dir, "nowhere"), path) },
	} {
		path := filepath.Join(dir, name)
		if err := make1(path); err != nil {
			t.Fatal(err)
		}
		l := newList(rowsOf(5))
		if _, err := Run(config(t, l, path)); err == nil || l.seen > 0 {
			t.Errorf("%s: %v, %d rows were read", name, err, l.seen)
		}
	}
	want := rowsOf(5)
	empty, link := filepath.Join(dir, "empty"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(empty, 0o700), os.Symlink(empty, link)); err != nil {
		t.Fatal(err)
	}
	c := config(t, newList(want), link)
	if _, err := Run(c); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, c.Engine, empty, nil); !maps.Equal(got, want) {
		t.Errorf("%d rows", len(got))
	}
	c = config(t, newList(want), filepath.Join(empty, "inside"))
	if _, err := Run(c); !errors.Is(err, storage.ErrForeign) {
		t.Errorf("inside a store: %v", err)
	}
}

// TestFinish: cut short between its last steps, a transfer is finished by the next run,
// which reads nothing.
func TestFinish(t *testing.T) {
	want := rowsOf(100)
	for _, renamed := range []bool{false, true} {
		target := filepath.Join(t.TempDir(), "store")
		c := config(t, newList(want), target)
		tr := &transfer{c: c}
		if err := errors.Join(tr.place(), tr.begin(), tr.bring(), tr.verify()); err != nil {
			t.Fatal(err)
		}
		if renamed {
			if err := os.Rename(tr.storeDir(), target); err != nil {
				t.Fatal(err)
			}
		}
		l := newList(want)
		c.Source = l
		r, err := Run(c)
		if err != nil || l.seen != 0 || r.Sum.Rows != int64(len(want)) {
			t.Fatalf("renamed %v: %+v, %v, %d rows were read", renamed, r, err, l.seen)
		}
		if got := contents(t, c.Engine, target, nil); !maps.Equal(got, want) {
			t.Errorf("%d rows", len(got))
		}
		if _, err := os.Stat(target + suffix); err == nil {
			t.Error("the directory of the transfer is still there")
		}
	}
}

// TestState: a damaged IMPORT is told of, and can be begun anew from.
func TestState(t *testing.T) {
	target := filepath.Join(t.TempDir(), "store")
	l := newList(rowsOf(3000))
	l.failAt = 2000
	if _, err := Run(config(t, l, target)); !errors.Is(err, errSource) {
		t.Fatal(err)
	}
	path := filepath.Join(target+suffix, stateName)
	for text, want := range map[string]string{"{": "cannot be read", `{"format": 9}`: "format 9"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Run(config(t, newList(nil), target)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := rowsOf(10)
	c := config(t, newList(want), target)
	c.Restart = true
	if _, err := Run(c); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, c.Engine, target, nil); !maps.Equal(got, want) {
		t.Errorf("%d rows", len(got))
	}
}

// TestSkipped: what a source left out is known at the end, from all runs.
func TestSkipped(t *testing.T) {
	target := filepath.Join(t.TempDir(), "store")
	l := newList(rowsOf(3000))
	l.failAt, l.skipped = 2500, 3
	if _, err := Run(config(t, l, target)); !errors.Is(err, errSource) {
		t.Fatal(err)
	}
	if r, err := Run(config(t, newList(rowsOf(3000)), target)); err != nil || r.Skipped != 3 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestStop: a transfer that is stopped has synced what it wrote, and is gone on with.
func TestStop(t *testing.T) {
	want := rowsOf(5000)
	target := filepath.Join(t.TempDir(), "store")
	c := config(t, newList(want), target)
	stop := make(chan struct{})
	c.Stop = stop
	c.Synced = func(sum dump.Sum) {
		if sum.Rows < int64(len(want)) {
			select {
			case <-stop:
			default:
				close(stop)
			}
		}
	}
	if _, err := Run(c); !errors.Is(err, ErrStopped) {
		t.Fatal(err)
	}
	c = config(t, newList(want), target)
	if r, err := Run(c); err != nil || !r.Resumed || r.Sum.Rows != int64(len(want)) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestWritten: a store with expiry keeps the times of the source, told by its iterators.
func TestWritten(t *testing.T) {
	target := filepath.Join(t.TempDir(), "store")
	c := config(t, newList(map[string]string{"a": "1", "bcd": "2"}), target)
	c.Options = map[string]any{"expiry_enabled": true}
	if _, err := Run(c); err != nil {
		t.Fatal(err)
	}
	s, err := c.Engine.Open(target, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	it, err := s.NewIter(storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	got := ""
	for ok := it.First(); ok; ok = it.Next() {
		got += fmt.Sprintf("%s %s %d\n", it.Key(), it.Value(), it.(interface{ Written() uint64 }).Written())
	}
	if got != "a 1 1001\nbcd 2 1003\n" {
		t.Error(got)
	}
}
