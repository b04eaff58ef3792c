package lsm

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A store keeps a log for operators in its directory, as LevelDB does: one line
// an event, with the words they know to look for ("Compaction error"). It holds
// opens and closes, errors of flushes and compactions, damage and stalls; what
// Pebble does when all is well goes to Config.Logger only.
const (
	logFileName     = "LOG"
	oldLogFileName  = "LOG.old"
	maxLogFileBytes = 1 << 20 // then it becomes LOG.old
	maxLogPending   = 64 << 10
	maxLogLine      = 4 << 10
	logTimeLayout   = "2006/01/02-15:04:05.000000"
)

// opLog is the log for operators of one store. Lines come from anywhere, often
// with Pebble's mutex held, so a goroutine of its own writes them. Nothing waits
// for it but Close, and a line that cannot be written is lost.
type opLog struct {
	fence *fence
	now   func() time.Time

	mu      sync.Mutex
	pending []byte
	dropped int
	writing bool
	idle    *sync.Cond // writing has become false
}

func newOpLog(f *fence, now func() time.Time) *opLog {
	l := &opLog{fence: f, now: now}
	l.idle = sync.NewCond(&l.mu)
	return l
}

// printf adds a line.
func (l *opLog) printf(format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " ")
	if len(text) > maxLogLine {
		text = text[:maxLogLine]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) > maxLogPending {
		l.dropped++
		return
	}
	l.pending = fmt.Appendf(l.pending, "%s %s\n", l.now().Format(logTimeLayout), text)
	if !l.writing {
		l.writing = true
		go l.write()
	}
}

// write writes what is pending until nothing is.
func (l *opLog) write() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.pending) > 0 {
		b := l.pending
		l.pending = nil
		if l.dropped > 0 {
			b = fmt.Appendf(b, "%s (%d lines more were not written)\n", l.now().Format(logTimeLayout), l.dropped)
			l.dropped = 0
		}
		l.mu.Unlock()
		if l.fence.enter() { // behind it the directory may be somebody else's
			_ = appendLog(l.fence.FS, l.fence.dir, b)
			l.fence.leave()
		}
		l.mu.Lock()
	}
	l.writing = false
	l.idle.Broadcast()
}

// flush waits until all lines are written.
func (l *opLog) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.writing {
		l.idle.Wait()
	}
}

// appendLog appends b to the log in dir, which is rotated when it is full.
func appendLog(fsys vfs.FS, dir string, b []byte) error {
	path := fsys.PathJoin(dir, logFileName)
	size := int64(0)
	if info, err := fsys.Stat(path); err == nil {
		size = info.Size()
	}
	if size+int64(len(b)) > maxLogFileBytes {
		if err := fsys.Rename(path, fsys.PathJoin(dir, oldLogFileName)); err != nil && !isNotExist(err) {
			return err
		}
		size = 0
	}
	f, err := fsys.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, size)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
