package file

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// vector is one entry of headers.manifest.json: what couch_file of CouchDB (August
// 2026, on OTP 25) made of a file.
type vector struct {
	File, Desc string
	Size       int64
	Result     *struct {
		NoValidHeader bool `json:"no_valid_header"`
		Class         string
		HeaderTerm    struct{ ETF string } `json:"header_term"`
		Tree          *struct {
			RowsSHA256 string `json:"rows_sha256"`
			Rows       int
			Class      string
		}
	}
	Chunks []struct {
		Ptr    int64
		Binary struct {
			SHA256 string
			Len    int
			Class  string
		}
	}
	Appended [][2]int64 // where each chunk begins and how much of the file it takes
}

const vectors = "../testdata"

func readVectors(t testing.TB) []vector {
	b, err := os.ReadFile(filepath.Join(vectors, "headers.manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vs []vector
	if err := json.Unmarshal(b, &vs); err != nil {
		t.Fatal(err)
	}
	if len(vs) < 29 {
		t.Fatalf("%d vectors", len(vs))
	}
	return vs
}

// classes are the kinds of errors by the original's words.
var classes = map[string]error{
	"badarg":              ErrHeaderTerm,
	"read_beyond_eof":     ErrBeyondEOF,
	"file_corruption":     ErrChecksum,
	"invalid_compression": ErrCompression,
}

func TestVectors(t *testing.T) {
	for _, v := range readVectors(t) {
		t.Run(v.File, func(t *testing.T) {
			f, err := OpenReadOnly(vfs.Default, filepath.Join(vectors, v.File), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if f.Size() != v.Size {
				t.Errorf("size %d, want %d", f.Size(), v.Size)
			}
			checkHeader(t, f, v)
			for _, c := range v.Chunks {
				checkClass(t, fmt.Sprint("chunk ", c.Ptr), c.Binary.Class, func() error {
					b, err := f.Read(nil, c.Ptr)
					if err == nil {
						err = sameBinary(b, c.Binary.Len, c.Binary.SHA256)
					}
					return err
				})
			}
			for _, a := range v.Appended {
				b, info, err := f.ReadChunk(nil, a[0])
				if err != nil || info.Size != a[1] {
					t.Errorf("chunk %d: %d bytes, info %+v, %v; want size %d", a[0], len(b), info, err, a[1])
				}
			}
		})
	}
}

func checkHeader(t *testing.T, f *File, v vector) {
	if v.Result == nil {
		return
	}
	h, err := f.LastHeader()
	if v.Result.NoValidHeader {
		if !errors.Is(err, ErrNoHeader) {
			t.Errorf("header %+v, %v", h, err)
		}
		return
	}
	checkClass(t, "header", v.Result.Class, func() error { return err })
	if err != nil {
		return
	}
	if got := hex.EncodeToString(h.Term); got != v.Result.HeaderTerm.ETF {
		t.Errorf("header %s, want %s", got, v.Result.HeaderTerm.ETF)
	}
	if again, err := f.HeaderAt(h.Ptr); err != nil || !bytes.Equal(again.Term, h.Term) || again.Size != h.Size {
		t.Errorf("header at %d: %+v, %v", h.Ptr, again, err)
	}
	if tree := v.Result.Tree; tree != nil {
		checkClass(t, "tree", tree.Class, func() error {
			w := walk{file: f, hash: sha256.New()}
			if err := w.root(h.Term); err != nil {
				return err
			}
			if got := hex.EncodeToString(w.hash.Sum(nil)); w.rows != tree.Rows || got != tree.RowsSHA256 {
				return fmt.Errorf("%d rows, hash %s; want %d, %s", w.rows, got, tree.Rows, tree.RowsSHA256)
			}
			return nil
		})
	}
}

func checkClass(t *testing.T, what, class string, run func() error) {
	t.Helper()
	err := run()
	want, known := classes[class]
	if class != "" && !known {
		t.Fatalf("%s: class %q", what, class)
	}
	if !errors.Is(err, want) || class == "" && err != nil {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// sameBinary compares a chunk with the length and the hash of what the original
// read.
func sameBinary(chunk []byte, size int, sum string) error {
	if got := sha256.Sum256(chunk); len(chunk) != size || hex.EncodeToString(got[:]) != sum {
		return fmt.Errorf("%d bytes, want %d, or another hash", len(chunk), size)
	}
	return nil
}
