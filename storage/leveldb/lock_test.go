package leveldb

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"scanode/storage"
)

// holdVariable makes the test binary lock LOCK in the directory it names, in the way the
// next character says, until its standard input ends.
const holdVariable = "SCANODE_TEST_HOLD"

func hold(text string) {
	f, err := os.OpenFile(filepath.Join(text[1:], "LOCK"), os.O_RDWR, 0)
	if err == nil && text[0] == 'c' {
		err = syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK})
	} else if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	fmt.Println(err)
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = f.Close()
}

// TestLocked: a lock by fcntl, which LevelDB takes, and one by flock, which others take,
// keep readers out, as long as they are held.
func TestLocked(t *testing.T) {
	for _, how := range []string{"c", "f"} {
		dir := t.TempDir()
		d := newBashoDir(t, dir, dir, 0, 0)
		d.log([]entry{{key: "a", value: "b", seq: 1, kind: 1}})
		d.finish(1)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), holdVariable+"="+how+dir)
		in, err1 := cmd.StdinPipe()
		out, err2 := cmd.StdoutPipe()
		if err := errors.Join(err1, err2, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "<nil>\n" {
			t.Fatalf("%q, %v", line, err)
		}
		if _, err := Open([]string{dir}, Options{}); !errors.Is(err, storage.ErrLocked) {
			t.Errorf("%s: %v", how, err)
		}
		if got, _, _, err := readAll([]string{dir}, Options{Force: true}, nil); err != nil || len(got) != 1 {
			t.Errorf("%s, by force: %v, %v", how, got, err)
		}
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		if got, _, _, err := readAll([]string{dir}, Options{}, nil); err != nil || len(got) != 1 {
			t.Errorf("%s, afterwards: %v, %v", how, got, err)
		}
	}
}
