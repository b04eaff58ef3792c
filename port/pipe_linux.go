package port

import (
	"io"
	"os"
	"syscall"
)

const (
	// setPipeSize is F_SETPIPE_SZ of fcntl(2), which package syscall does not
	// name.
	setPipeSize = 1031

	// pipeBytes is room for some batches of a scan, instead of half of one: the
	// program finds the next rows while the BEAM reads. It is the most that an
	// unprivileged process may ask for where nobody changed the limit.
	pipeBytes = 1 << 20
)

// widen gives the pipe that w may be more room. What is no pipe, or may not grow,
// stays as it is.
func widen(w io.Writer) {
	f, ok := w.(*os.File)
	if !ok {
		return
	}
	// Not by f.Fd, which would make the file blocking.
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, setPipeSize, pipeBytes)
	})
}
