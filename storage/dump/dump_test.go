package dump

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scanode/etf"
	"scanode/storage"
)

// row is one row of a stream.
type row struct {
	key, value string
	written    uint64
}

func write(t testing.TB, rows []row) ([]byte, Sum) {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, etf.Map{{Key: []byte("engine"), Value: []byte("lsm")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if err := w.Add([]byte(r.key), []byte(r.value), r.written); err != nil {
			t.Fatal(err)
		}
	}
	sum, err := w.End()
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), sum
}

func read(b []byte) ([]row, error) {
	r, err := NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	var rows []row
	for r.Next() {
		rows = append(rows, row{string(r.Key()), string(r.Value()), r.Written()})
	}
	return rows, r.Err()
}

// someRows are rows of many shapes, over several frames.
func someRows(n int) []row {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	keys := map[string]bool{"": true}
	for len(keys) < n {
		keys[fmt.Sprintf("key\x00%d", rng.Uint64())] = true
	}
	var rows []row
	for key := range keys {
		value := make([]byte, rng.IntN(1000))
		for i := range value {
			value[i] = byte(rng.Uint32())
		}
		r := row{key: key, value: string(value)}
		if rng.IntN(2) == 0 {
			r.written = []uint64{1, math.MaxInt64, math.MaxUint64, 1700000000000000}[rng.IntN(4)]
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.key, b.key) })
	return rows
}

// TestRoundTrip: what was written is read.
func TestRoundTrip(t *testing.T) {
	for _, n := range []int{1, 2, 3000} {
		want := someRows(n)
		if n == 2 {
			want[1].value = strings.Repeat("x", 3*blockBytes)
		}
		b, sum := write(t, want)
		got, err := read(b)
		if err != nil || !slices.Equal(got, want) || sum.Rows != int64(n) {
			t.Errorf("%d rows: %d are read, %v", n, len(got), err)
		}
	}
	b, _ := write(t, nil)
	if got, err := read(b); err != nil || len(got) != 0 {
		t.Errorf("no rows: %d, %v", len(got), err)
	}
}

// TestCutShort: a stream that is cut anywhere, even between two frames, is refused.
func TestCutShort(t *testing.T) {
	rows := someRows(700)
	b, _ := write(t, rows)
	for cut := 0; cut < len(b); cut++ {
		if cut > 150 && cut < len(b)-150 && cut%4999 != 0 {
			continue
		}
		if got, err := read(b[:cut]); !errors.Is(err, storage.ErrCorrupt) {
			t.Fatalf("cut at %d of %d: %d rows, %v", cut, len(b), len(got), err)
		}
	}
	if _, err := read(append(b, 0)); !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("with a byte more: %v", err)
	}
}

// frames takes a stream apart.
func frames(b []byte) (all [][]byte) {
	for len(b) > 0 {
		n := headBytes + int(b[0])<<24 + int(b[1])<<16 + int(b[2])<<8 + int(b[3])
		all = append(all, b[:n])
		b = b[n:]
	}
	return all
}

// TestFrames: a frame that is missing, there twice or in another's place is noticed.
func TestFrames(t *testing.T) {
	b, _ := write(t, someRows(3000))
	all := frames(b)
	if len(all) < 5 {
		t.Fatalf("%d frames", len(all))
	}
	for name, changed := range map[string][][]byte{
		"missing":   slices.Delete(slices.Clone(all), 2, 3),
		"the first": all[1:],
		"twice":     slices.Insert(slices.Clone(all), 2, all[2]),
		"exchanged": {all[0], all[2], all[1], all[3], all[4]},
		"the end":   {all[0], all[len(all)-1]},
	} {
		if got, err := read(slices.Concat(changed...)); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("%s: %d rows, %v", name, len(got), err)
		}
	}
}

// TestSum: the sum is that of any order of the same rows, and no other rows'.
func TestSum(t *testing.T) {
	var a, b, c, d Sum
	a.Add([]byte("k"), []byte("v1"))
	a.Add([]byte("l"), []byte("v2"))
	b.Add([]byte("l"), []byte("v2"))
	b.Add([]byte("k"), []byte("v1"))
	c.Add([]byte("k"), []byte("v2"))
	c.Add([]byte("l"), []byte("v1"))
	d.Add([]byte("kv"), []byte("1"))
	d.Add([]byte("l"), []byte("v2"))
	if a != b {
		t.Error("the order counts")
	}
	if a.Low == c.Low || a.Low == d.Low || a.High == c.High || a.High == d.High {
		t.Error("other rows have the same sum")
	}
}

// TestBeam: the BEAM reads what is written here, and what it writes is read: both by the
// functions in docs/stream.md.
func TestBeam(t *testing.T) {
	if _, err := exec.LookPath("escript"); err != nil {
		t.Skip("no escript on PATH: nothing to compare with")
	}
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "stream.md"))
	if err != nil {
		t.Fatal(err)
	}
	source := ""
	for _, part := range strings.Split(string(doc), "```erlang\n")[1:] {
		text, _, _ := strings.Cut(part, "```")
		source += text
	}
	dir := t.TempDir()
	script := "#!/usr/bin/env escript\n" + source + `
main([In, Out]) ->
    {ok, Rows} = read_rows(In, fun(Row, Acc) -> [Row | Acc] end, []),
    lists:foreach(fun(Row) ->
        L = tuple_to_list(Row),
        [K, V] = lists:sublist(L, 2),
        W = case L of [_, _, T] -> T; _ -> 0 end,
        io:format("~s ~s ~b~n", [hex(K), hex(V), W])
    end, lists:reverse(Rows)),
    ok = write_rows(Out, lists:reverse(Rows)).
hex(B) -> [io_lib:format("~2.16.0b", [X]) || <<X>> <= B].
`
	in, out, path := filepath.Join(dir, "in"), filepath.Join(dir, "out"), filepath.Join(dir, "script")
	want := someRows(1200)
	b, _ := write(t, want)
	for name, text := range map[string][]byte{in: b, path: []byte(script)} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	told, err := exec.Command("escript", path, in, out).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, told)
	}
	var text strings.Builder
	for _, r := range want {
		fmt.Fprintf(&text, "%s %s %d\n", hex.EncodeToString([]byte(r.key)), hex.EncodeToString([]byte(r.value)), r.written)
	}
	if string(told) != text.String() {
		t.Errorf("the BEAM reads %d bytes of text, want %d: %.200s", len(told), text.Len(), told)
	}
	back, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read(back); err != nil || !slices.Equal(got, want) {
		t.Errorf("of the BEAM's %d rows are read, %v", len(got), err)
	}
	// A stream that is cut short is refused there, too.
	if err := os.WriteFile(in, b[:len(b)-len(frames(b)[len(frames(b))-1])], 0o600); err != nil {
		t.Fatal(err)
	}
	if told, err := exec.Command("escript", path, in, out).CombinedOutput(); err == nil {
		t.Errorf("a stream without its end: %.100s", told)
	}
}

// FuzzReader: of any bytes that are taken for a whole stream, the rows written again are
// a stream with the same rows; and a stream without its last byte is refused.
func FuzzReader(f *testing.F) {
	b, _ := write(f, someRows(20))
	f.Add(b)
	b, _ = write(f, nil)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		rows, err := read(b)
		for i := 1; i < len(rows); i++ {
			if rows[i-1].key >= rows[i].key {
				t.Fatal("keys do not ascend")
			}
		}
		if err != nil {
			if !errors.Is(err, storage.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		again, _ := write(t, rows)
		if got, err := read(again); err != nil || !slices.Equal(got, rows) {
			t.Fatalf("%d rows, written again %d, %v", len(rows), len(got), err)
		}
		if _, err := read(b[:len(b)-1]); err == nil {
			t.Fatal("cut short, and nobody was told")
		}
	})
}

// FuzzFrame: a frame of rows with the right checksum, but any term in it, between a right
// beginning and a right end, gives the rows that it has or is refused.
func FuzzFrame(f *testing.F) {
	whole, _ := write(f, someRows(3))
	f.Add(frames(whole)[1][headBytes:])
	f.Add([]byte{131, 106})
	f.Fuzz(func(t *testing.T, term []byte) {
		head, _ := write(t, nil)
		w := &Writer{out: &bytes.Buffer{}}
		w.write(func(dst []byte) []byte { return append(dst, term...) })
		b := slices.Concat(frames(head)[0], w.out.(*bytes.Buffer).Bytes(), frames(head)[1])
		if rows, err := read(b); err == nil {
			t.Fatalf("%d rows that the end does not count", len(rows))
		}
	})
}
