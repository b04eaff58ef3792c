package port

import (
	"os"
	"syscall"
	"testing"
)

// getPipeSize is F_GETPIPE_SZ of fcntl(2).
const getPipeSize = 1032

// TestPipeIsWide checks that the pipe to the BEAM grows, unless the system's limit
// forbids it, and that a Conn on something else works as before.
func TestPipeIsWide(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	before := pipeSizeOf(t, w)
	if _, err := New(r, w, Config{}); err != nil {
		t.Fatal(err)
	}
	if after := pipeSizeOf(t, w); after != pipeBytes && after != before {
		t.Errorf("the pipe has %d bytes, it had %d", after, before)
	}
	file, err := os.Create(t.TempDir() + "/frames")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := New(r, file, Config{}); err != nil {
		t.Errorf("no pipe: %v", err)
	}
}

func pipeSizeOf(t *testing.T, f *os.File) int {
	t.Helper()
	n, _, e := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), getPipeSize, 0)
	if e != 0 {
		t.Fatal(e)
	}
	return int(n)
}
