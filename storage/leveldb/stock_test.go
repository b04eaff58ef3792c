package leveldb

import (
	"bufio"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"scanode/storage"
)

var (
	updateRecorded = flag.Bool("update", false, "record the directories of LevelDB's in testdata anew")
	seedFlag       = flag.Uint64("seed", 0, "seed of the random writes; 0 is the time")
)

func seed(t *testing.T) uint64 {
	n := *seedFlag
	if n == 0 {
		n = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed %d", n)
	return n
}

// program is testdata/stock.cc, compiled once against the LevelDB of this machine.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "scanode-leveldb-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "stock")
	out, err := exec.Command("g++", "-O1", "-o", path, filepath.Join("testdata", "stock.cc"), "-lleveldb", "-lpthread").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdVariable); dir != "" {
		hold(dir)
		return
	}
	flag.Parse()
	status := m.Run()
	if path, err := program(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(status)
}

// stock is LevelDB itself, and a map of what it was told.
type stock struct {
	t    *testing.T
	in   io.WriteCloser
	out  *bufio.Reader
	cmd  *exec.Cmd
	rows map[string]string
}

func startStock(t *testing.T) *stock {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Skipf("LevelDB cannot be compiled against, so only what was recorded of it is tested (apt-get install g++ libleveldb-dev): %v", err)
	}
	cmd := exec.Command(path)
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &stock{t: t, in: in, out: bufio.NewReader(out), cmd: cmd, rows: map[string]string{}}
}

// say gives a command and waits until it is done.
func (s *stock) say(format string, args ...any) {
	s.t.Helper()
	if _, err := fmt.Fprintf(s.in, format+"\n", args...); err != nil {
		s.t.Fatal(err)
	}
	if line, err := s.out.ReadString('\n'); line != "ok\n" {
		s.t.Fatalf("%s: %q, %v", format, line, err)
	}
}

// leave ends the process with the store open, and waits for the end.
func (s *stock) leave() {
	s.say("leave")
	_ = s.in.Close()
	if err := s.cmd.Wait(); err != nil {
		s.t.Fatal(err)
	}
}

func hexOf(s string) string {
	if s == "" {
		return "-"
	}
	return hex.EncodeToString([]byte(s))
}

func (s *stock) put(key, value string) {
	fmt.Fprintf(s.in, "put %s %s\n", hexOf(key), hexOf(value))
	s.rows[key] = value
}

func (s *stock) del(key string) {
	fmt.Fprintf(s.in, "del %s\n", hexOf(key))
	delete(s.rows, key)
}

// random does n random writes to few keys, so that many are overwritten and deleted.
func (s *stock) random(rng *rand.Rand, n, keys, valueBytes int) {
	for i := 0; i < n; {
		size := 1
		if rng.IntN(4) == 0 {
			size = 1 + rng.IntN(30)
		}
		s.say("begin")
		for range size {
			key := fmt.Sprintf("%x", rng.IntN(keys)*7919%keys)
			switch rng.IntN(20) {
			case 0:
				key = "" // LevelDB takes it
			case 1:
				key += "\x00\xff\x00"
			}
			if rng.IntN(3) == 0 {
				s.del(key)
			} else {
				value := make([]byte, rng.IntN(valueBytes))
				for j := range value {
					value[j] = byte(rng.IntN(1 + j%200))
				}
				s.put(key, string(value))
			}
		}
		s.say("end")
		i += size
	}
}

// layouts are ways to leave a directory. Each gives the same kind of writes.
var layouts = []struct {
	name string
	run  func(s *stock, rng *rand.Rand, dir string)
}{
	{"logonly", func(s *stock, rng *rand.Rand, dir string) {
		s.say("open %s 1 4194304 4096", dir)
		s.random(rng, 300, 100, 60)
		s.say("close")
	}},
	{"killed", func(s *stock, rng *rand.Rand, dir string) {
		s.say("open %s 0 65536 1024", dir)
		s.random(rng, 600, 200, 400)
		s.leave()
	}},
	{"levels", func(s *stock, rng *rand.Rand, dir string) {
		s.say("open %s 1 65536 1024", dir)
		s.random(rng, 500, 200, 300)
		s.say("compact")
		s.random(rng, 500, 200, 300)
		s.say("close")
		s.say("open %s 1 65536 1024", dir) // what was in the log gets a table
		s.random(rng, 400, 200, 300)
		s.say("close")
	}},
	{"compacted", func(s *stock, rng *rand.Rand, dir string) {
		s.say("open %s 1 65536 4096", dir)
		s.random(rng, 900, 150, 200)
		s.say("compact")
		s.say("close")
	}},
	{"empty", func(s *stock, rng *rand.Rand, dir string) {
		s.say("open %s 1 65536 4096", dir)
		s.say("close")
	}},
}

// TestStock: of directories that LevelDB itself writes, the rows are those of a map
// that got the same writes, and nothing in them is touched.
func TestStock(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed(t), 0))
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			s := startStock(t)
			dir := filepath.Join(t.TempDir(), "db")
			l.run(s, rng, dir)
			before := fingerprint(t, dir)
			info := compareRows(t, []string{dir}, s.rows)
			t.Logf("%d rows: %+v", len(s.rows), info)
			if fingerprint(t, dir) != before {
				t.Error("the directory has changed")
			}
		})
	}
}

// TestStockLarge: more rows, over all levels that so many reach, and rows larger than
// what is read at once.
func TestStockLarge(t *testing.T) {
	s := startStock(t)
	rng := rand.New(rand.NewPCG(seed(t), 1))
	dir := filepath.Join(t.TempDir(), "db")
	s.say("open %s 1 65536 1024", dir)
	for range 4 {
		s.random(rng, 4000, 3000, 300)
		s.put("large", strings.Repeat("0123456789abcdef", 50_000))
		s.put("larger", string(make([]byte, windowBytes*3)))
		s.random(rng, 1000, 3000, 300)
	}
	s.say("close")
	info := compareRows(t, []string{dir}, s.rows)
	if info.Tables < 5 {
		t.Errorf("%+v: too few tables for a test of merging", info)
	}
}

// TestStockLocked: LevelDB's lock is seen, and ours is seen by LevelDB.
func TestStockLocked(t *testing.T) {
	s := startStock(t)
	dir := filepath.Join(t.TempDir(), "db")
	s.say("open %s 1 65536 4096", dir)
	s.put("a", "b")
	s.say("begin") // so that the put is done
	if _, err := Open([]string{dir}, Options{}); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("while LevelDB has it open: %v", err)
	}
	if got, _, _, err := readAll([]string{dir}, Options{Force: true}, nil); err != nil || got["a"] != "b" {
		t.Errorf("by force: %v, %v", got, err)
	}
	s.say("end")
	s.say("close")
	r, err := Open([]string{dir}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	path, _ := program()
	second := exec.Command(path)
	second.Stdin = strings.NewReader(fmt.Sprintf("open %s 1 65536 4096\n", dir))
	if out, err := second.CombinedOutput(); err == nil || !strings.Contains(string(out), "lock") {
		t.Errorf("LevelDB opens it while it is read: %s", out)
	}
}

// TestRecorded: the same with directories that LevelDB 1.23 wrote once, where it is not
// at hand. The file beside each has what a map had.
func TestRecorded(t *testing.T) {
	for i, l := range layouts {
		dir := filepath.Join("testdata", "recorded", l.name)
		if *updateRecorded {
			record(t, dir, uint64(i), l.run)
		}
		compareRows(t, []string{dir}, recordedRows(t, dir+".rows"))
	}
}

func record(t *testing.T, dir string, n uint64, run func(*stock, *rand.Rand, string)) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	s := startStock(t)
	run(s, rand.New(rand.NewPCG(n, 2)), dir)
	_ = os.Remove(filepath.Join(dir, "LOG")) // it tells of this machine and this hour
	_ = os.Remove(filepath.Join(dir, "LOG.old"))
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(s.rows)) {
		fmt.Fprintln(&text, hexOf(key), hexOf(s.rows[key]))
	}
	if err := os.WriteFile(dir+".rows", []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func recordedRows(t *testing.T, path string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(b)) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), " ")
		key, err1 := hex.DecodeString(strings.TrimPrefix(k, "-"))
		value, err2 := hex.DecodeString(strings.TrimPrefix(v, "-"))
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		rows[string(key)] = string(value)
	}
	return rows
}
