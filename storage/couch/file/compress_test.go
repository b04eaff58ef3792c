package file

import (
	"bytes"
	czlib "compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	ksnappy "github.com/klauspost/compress/snappy"

	"scanode/etf"
)

// compressions are one of each kind.
func compressions(t testing.TB) (cs []Compression) {
	for _, word := range []string{"none", "snappy", "deflate_1", "deflate_6", "deflate_9", "zstd", "zstd_1", "zstd_22"} {
		c, err := ParseCompression(word)
		if err != nil || c.String() != word {
			t.Fatalf("%s: %v, %v", word, c, err)
		}
		cs = append(cs, c)
	}
	return cs
}

func TestParseCompression(t *testing.T) {
	compressions(t)
	for _, word := range []string{"", "None", "snappy_1", "deflate", "deflate_0", "deflate_10", "deflate_06", "deflate_+6", "zstd_0", "zstd_23", "zstd_", "gzip"} {
		if c, err := ParseCompression(word); err == nil {
			t.Errorf("%q is %v", word, c)
		}
	}
}

// someTerm makes a list of about size bytes that compresses like a node.
func someTerm(r *rand.Rand, size int) []byte {
	key := etf.AppendBinary(nil, []byte("key of a row in a tree"))
	n := size/len(key) + 1
	b := etf.AppendListHeader(etf.AppendVersion(nil), n)
	for range n {
		b = append(b, key...)
		b[len(b)-1-r.IntN(20)] = byte(r.IntN(256))
	}
	return etf.AppendNil(b)
}

// TestCompression compresses and decompresses terms of many sizes.
func TestCompression(t *testing.T) {
	r := newRand(t)
	for _, size := range []int{1, 10, 100, 1000, 4096, 70_000, 300_000} {
		term := someTerm(r, size)
		for _, c := range compressions(t) {
			roundTrip(t, c, term)
		}
	}
	large := etf.AppendBinary(etf.AppendVersion(nil), bytes.Repeat([]byte("0123456789abcdef"), maxWindow/8))
	roundTrip(t, Compression{Method: Zstd, Level: 1}, large)
	roundTrip(t, Compression{Method: Snappy}, large)
}

// roundTrip: a term comes back as it was, where the limit allows for it and not
// where it does not, and whatever dst held stays.
func roundTrip(t testing.TB, c Compression, term []byte) {
	t.Helper()
	before := []byte("before")
	data := c.Append(bytes.Clone(before), term)
	if !bytes.HasPrefix(data, before) {
		t.Fatalf("%v: what was in dst is gone", c)
	}
	data = data[len(before):]
	if c.Method == Deflate && len(data) > len(term) {
		t.Fatalf("%v: %d bytes became %d", c, len(term), len(data))
	}
	out, err := Decompress(bytes.Clone(before), data, len(term))
	if err != nil || !bytes.Equal(out[len(before):], term) || !bytes.HasPrefix(out, before) {
		t.Fatalf("%v of %d bytes: %d bytes, %v", c, len(term), len(out)-len(before), err)
	}
	if out, err := Decompress(before, data, len(term)-1); !errors.Is(err, ErrTooLarge) || len(out) != len(before) {
		t.Fatalf("%v of %d bytes, limit one less: %d bytes, %v", c, len(term), len(out)-len(before), err)
	}
}

// TestRecordedTerms compares what the original has compressed with what other
// implementations of the methods make of it, and our sizes with its.
func TestRecordedTerms(t *testing.T) {
	for _, v := range []struct {
		file   string
		c      Compression
		larger float64 // than the original's
	}{
		{"tree_snappy_500.cf", Compression{Method: Snappy}, 1.01},
		// No zlib in Go looks for matches of three bytes, as the original's does.
		{"tree_deflate_1_800.cf", Compression{Method: Deflate, Level: 1}, 1.08},
		{"tree_deflate_6_2500.cf", Compression{Method: Deflate, Level: 6}, 1.03},
		{"tree_deflate_9_60.cf", Compression{Method: Deflate, Level: 9}, 1.07},
	} {
		f, err := OpenReadOnly(vfs.Default, filepath.Join(vectors, v.file), Options{})
		if err != nil {
			t.Fatal(err)
		}
		raw := make([]byte, f.Size())
		if err := f.readAt(raw, 0); err != nil {
			t.Fatal(err)
		}
		ps, _ := parts(t, f, raw)
		f.Close()
		theirs, ours := 0, 0
		for _, p := range ps {
			if p.header {
				continue
			}
			term, err := Decompress(nil, p.body, 1<<20)
			if err != nil {
				t.Fatalf("%s at %d: %v", v.file, p.chunk.Ptr, err)
			}
			if other, err := otherDecompress(p.body); err != nil || !bytes.Equal(term, other) {
				t.Fatalf("%s at %d: another decoder has %d bytes, %v; ours %d", v.file, p.chunk.Ptr, len(other), err, len(term))
			}
			theirs += len(p.body)
			ours += len(v.c.Append(nil, term))
		}
		if float64(ours) > v.larger*float64(theirs) {
			t.Errorf("%s: %d bytes, the original %d", v.file, ours, theirs)
		}
		t.Logf("%s: %d bytes, the original %d: %+.1f %%", v.file, ours, theirs, 100*float64(ours)/float64(theirs)-100)
	}
}

// otherDecompress is Decompress with compress/zlib and klauspost's snappy, and
// without bounds.
func otherDecompress(data []byte) ([]byte, error) {
	switch {
	case data[0] == 1:
		return ksnappy.Decode(nil, data[1:])
	case data[1] != 80:
		return data, nil
	}
	r, err := czlib.NewReader(bytes.NewReader(data[6:]))
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	if err == nil && len(b) != int(binary.BigEndian.Uint32(data[2:])) {
		err = errors.New("another size than claimed")
	}
	return append([]byte{131}, b...), err
}

// bomb deflates size zeros, with claim as the size.
func bomb(size int, claim uint32) []byte {
	var z bytes.Buffer
	w := czlib.NewWriter(&z)
	io.CopyN(w, zeros{}, int64(size))
	w.Close()
	return append(binary.BigEndian.AppendUint32([]byte{131, 80}, claim), z.Bytes()...)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestBombs: what claims or has too much costs no more than the limit.
func TestBombs(t *testing.T) {
	const limit = 1 << 20
	zstdBomb := Compression{Method: Zstd}.Append(nil, make([]byte, 8<<20))
	// A frame without content, with a window of 2 GiB.
	window := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00}
	for _, c := range []struct {
		what string
		data []byte
		want error
	}{
		{"deflate, honest", bomb(8<<20, 8<<20), ErrTooLarge},
		{"deflate, claims less", bomb(8<<20, 1000), ErrCompression},
		{"deflate, claims all it may", bomb(8<<20, limit-1), ErrCompression},
		{"deflate, claims more", bomb(100, 1000), ErrCompression},
		{"deflate, claims 4 GiB", bomb(100, 1<<32-1), ErrTooLarge},
		{"deflate, claims what cannot be", bomb(0, 500_000), ErrCompression},
		{"snappy, claims 4 GiB", []byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f}, ErrTooLarge},
		{"snappy, claims what cannot be", []byte{1, 0x80, 0x80, 0x20, 0x00, 0x00}, ErrCompression},
		{"zstd", zstdBomb, ErrTooLarge},
		{"zstd, window", window, ErrCompression},
		{"snappy of deflated", append([]byte{1}, ksnappy.Encode(nil, bomb(100, 100))...), ErrCompression},
		{"nothing", nil, ErrCompression},
		{"version only", []byte{131}, ErrCompression},
		{"another byte", []byte{2, 131, 106}, ErrCompression},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Decompress(nil, c.data, limit)
		runtime.ReadMemStats(&after)
		cost := after.TotalAlloc - before.TotalAlloc
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
		most := uint64(4 * limit)
		if len(c.data) < 100 {
			most = 64 << 10 // its own reader's window; nothing that is claimed
		}
		if bytes.HasPrefix(c.data, zstdMagic) {
			most += 2 * maxWindow // and its decoder may be new
		}
		if cost > most {
			t.Errorf("%s: %d bytes are allocated", c.what, cost)
		}
		t.Logf("%s: %d bytes allocated, %v", c.what, cost, err)
	}
}

// TestBeam lets the BEAM read deflated terms of ours, and reads its own.
func TestBeam(t *testing.T) {
	if _, err := exec.LookPath("escript"); err != nil {
		t.Skip("no escript on PATH: nothing to compare with")
	}
	r := newRand(t)
	var in bytes.Buffer
	var terms [][]byte
	send := func(b []byte) { in.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)) }
	for range 200 {
		term := etf.AppendBinary(etf.AppendVersion(nil), bytes.Repeat([]byte{byte(r.IntN(256))}, r.IntN(60)))
		if r.IntN(2) == 0 {
			term = someTerm(r, r.IntN(3000))
		}
		terms = append(terms, term)
		level := 1 + r.IntN(9)
		in.WriteByte(byte(level))
		send(Compression{Method: Deflate, Level: level}.Append(nil, term))
	}
	cmd := exec.Command("escript", "testdata/deflate.escript")
	cmd.Stdin = &in
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	for i, term := range terms {
		for _, kind := range []string{"the BEAM read", "the BEAM deflated"} {
			if len(out) < 4 {
				t.Fatalf("term %d: the answer is too short: %s", i, stderr.String())
			}
			n := int(binary.BigEndian.Uint32(out))
			answer := out[4 : 4+n]
			out = out[4+n:]
			plain, err := Decompress(nil, answer, 1<<20)
			if err != nil || !bytes.Equal(plain, term) {
				t.Fatalf("term %d: %s %d bytes, %v; want %d", i, kind, len(plain), err, len(term))
			}
		}
	}
}

// TestZstd lets the zstd program read frames of ours, and reads its own.
func TestZstd(t *testing.T) {
	if _, err := exec.LookPath("zstd"); err != nil {
		t.Skip("no zstd on PATH: nothing to compare with")
	}
	run := func(in []byte, args ...string) []byte {
		cmd := exec.Command("zstd", append(args, "-q", "-c")...)
		cmd.Stdin = bytes.NewReader(in)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("zstd %v: %v", args, err)
		}
		return out
	}
	r := newRand(t)
	for _, size := range []int{1, 1000, 100_000} {
		term := someTerm(r, size)
		for _, level := range []int{1, 3, 19, 22} {
			word := "-" + strconv.Itoa(level)
			got, err := Decompress(nil, run(term, "--ultra", word), len(term))
			if err != nil || !bytes.Equal(got, term) {
				t.Errorf("%d bytes at level %d: %d bytes, %v", size, level, len(got), err)
			}
			if got := run(Compression{Method: Zstd, Level: level}.Append(nil, term), "-d"); !bytes.Equal(got, term) {
				t.Errorf("ours of %d bytes at level %d: zstd reads %d", size, level, len(got))
			}
		}
	}
	// The difference that maxWindow tells of. The second half repeats what no
	// smaller window reaches.
	half := make([]byte, maxWindow+1<<20)
	for i := range half {
		half[i] = byte(r.Uint32())
	}
	far := etf.AppendBinary(etf.AppendVersion(nil), append(half, half...))
	if got, err := Decompress(nil, run(far, "-1", "--long=27"), 1<<30); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a term that needs a larger window: %d bytes, %v", len(got), err)
	}
	large := etf.AppendBinary(etf.AppendVersion(nil), make([]byte, 2*maxWindow))
	for _, level := range []string{"-19", "--long=27"} {
		if got, err := Decompress(nil, run(large, level), 1<<30); err != nil || !bytes.Equal(got, large) {
			t.Errorf("a large term, level %s: %d bytes, %v", level, len(got), err)
		}
	}
}

func TestDecompressAllocates(t *testing.T) {
	term := someTerm(newRand(t), 1200)
	dst := make([]byte, 0, 4096)
	for _, c := range []Compression{{}, {Method: Snappy}} {
		data := c.Append(nil, term)
		if n := testing.AllocsPerRun(100, func() { Decompress(dst, data, 1<<20) }); n != 0 {
			t.Errorf("Decompress %v: %v allocations", c, n)
		}
		if n := testing.AllocsPerRun(100, func() { c.Append(dst, term) }); n != 0 {
			t.Errorf("Append %v: %v allocations", c, n)
		}
	}
}

func BenchmarkCompress(b *testing.B) {
	term := someTerm(newRand(b), 1200)
	for _, c := range compressions(b) {
		b.Run(c.String(), func(b *testing.B) {
			b.SetBytes(int64(len(term)))
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				dst = c.Append(dst[:0], term)
			}
		})
	}
}

func BenchmarkDecompress(b *testing.B) {
	term := someTerm(newRand(b), 1200)
	for _, c := range compressions(b) {
		b.Run(c.String(), func(b *testing.B) {
			data := c.Append(nil, term)
			b.SetBytes(int64(len(term)))
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				dst, _ = Decompress(dst[:0], data, 1<<20)
			}
		})
	}
}
