package lsm

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"scanode/storage"
)

// The states of a store. It only moves down this list.
const (
	stateLive uint32 = iota
	stateParked
	stateClosed
)

// park stops the store after a failure it cannot work around. The first cause
// is kept. It may be called from anywhere, with any lock of pebble's held.
func (s *store) park(cause error) {
	s.parkOnce.Do(func() {
		s.parkErr.Store(&parkError{cause})
		s.state.CompareAndSwap(stateLive, stateParked)
		s.fence.up.Store(true)
		close(s.parked)
		s.log(LevelFatal, "parked: "+cause.Error())
		s.ops.printf("parked: %v", cause) // written if the fence is not up yet
	})
}

// cause is what the store was parked for, wrapped in ErrParked, or nil.
func (s *store) cause() error {
	if p := s.parkErr.Load(); p != nil {
		return p
	}
	return nil
}

// refusal is the error of a call that the state of the store forbids.
func (s *store) refusal() error {
	switch s.state.Load() {
	case stateLive:
		return nil
	case stateClosed:
		return failed(storage.ErrClosed)
	}
	return failed(s.cause())
}

// fatal is the panic by which Logger.Fatalf leaves pebble.
type fatal struct{ error }

// guard ends a call into pebble: deferred, it turns a panic into an error and
// parks the store, for pebble's locks are in an unknown state after it.
func (s *store) guard(err *error) {
	if r := recover(); r != nil {
		*err = s.crashed(r)
	}
}

// crashed parks the store for a recovered panic.
func (s *store) crashed(r any) error {
	cause, ok := r.(fatal)
	if !ok {
		cause = fatal{fmt.Errorf("panic in pebble: %v", r)}
	}
	s.park(cause.error)
	return failed(s.cause())
}

// bounded runs f, a call into pebble that opens or closes, with panics and
// Fatalf contained. It returns false when f did not come back: once the store
// is parked it is given graceTime, for a lock may be lost.
func (s *store) bounded(f func()) bool {
	done := make(chan bool, 1)
	go func() {
		ok := false
		defer func() { done <- ok }()
		var err error
		func() {
			defer s.guard(&err)
			f()
		}()
		ok = err == nil
	}()
	select {
	case ok := <-done:
		return ok
	case <-s.parked:
	}
	timer := time.NewTimer(graceTime)
	defer timer.Stop()
	select {
	case ok := <-done:
		return ok
	case <-timer.C:
		return false
	}
}

// graceTime is how long Open and Close wait for pebble in a parked store. Only
// a store that lost a lock, or whose disk hangs, needs all of it.
const graceTime = 3 * time.Second

// logger is what pebble logs to.
type logger struct{ s *store }

// Infof implements pebble.Logger.
func (l logger) Infof(format string, args ...any) { l.s.log(LevelInfo, fmt.Sprintf(format, args...)) }

// Errorf implements pebble.Logger.
func (l logger) Errorf(format string, args ...any) { l.s.log(LevelError, fmt.Sprintf(format, args...)) }

// Fatalf implements pebble.Logger. Pebble counts on it not to return. The
// failures of the disk that lead here are kept from pebble by the fence; what
// is left are its own broken invariants. The store is parked. Where a call of
// ours is below us on the stack, a panic brings us back to it and unlocks on
// the way what pebble unlocks with defer; a goroutine of pebble's own ends.
func (l logger) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	l.s.park(err)
	if onOurStack() {
		panic(fatal{err})
	}
	runtime.Goexit()
}

// onOurStack reports whether a function of this package outside the logger has
// called pebble on this goroutine.
func onOurStack() bool {
	pcs := make([]uintptr, 512)
	// Skip Callers, onOurStack and Fatalf.
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		frame, more := frames.Next()
		if strings.Contains(frame.Function, "/storage/lsm.(*store).") ||
			strings.Contains(frame.Function, "/storage/lsm.(*iter).") {
			return true
		}
		if !more {
			return false
		}
	}
}

// Limits of background work that fails again and again: pebble itself tries
// again at once and for ever.
const (
	maxFlushFailures = 8
	firstBackoff     = 10 * time.Millisecond
	lastBackoff      = time.Second
)

// backoff is how long to wait after n failures in a row.
func backoff(n int64) time.Duration {
	if n <= 0 {
		return 0
	}
	return min(firstBackoff<<min(n-1, 10), lastBackoff)
}

// listener is told of pebble's events, often with the database locked.
func (s *store) listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			s.backgroundErrors.Add(1)
			s.log(LevelError, "background: "+err.Error())
			s.ops.printf("Background error: %v", err)
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			s.corruptBlocks.Add(1)
			if !s.fence.bad.note(info.Path, info.Details) {
				return // who reads it again need not be told again
			}
			s.log(LevelError, fmt.Sprintf("corruption: %s: %v", info.Path, info.Details))
			s.ops.printf("Corruption: %s: %v", info.Path, info.Details)
		},
		FlushBegin: func(pebble.FlushInfo) { s.flushes.begin() },
		FlushEnd: func(info pebble.FlushInfo) {
			s.flushes.end(info.Err == nil)
			if info.Err == nil {
				s.flushFailures.Store(0)
				return
			}
			s.ops.printf("Flush error: %v", info.Err)
			n := s.flushFailures.Add(1)
			if s.state.Load() == stateClosed {
				// Close does without: everything is in the log.
				s.flushFailedOnce.Do(func() { close(s.flushFailed) })
			}
			if n >= maxFlushFailures {
				s.park(fmt.Errorf("flush failed %d times: %w", maxFlushFailures, info.Err))
			}
		},
		CompactionEnd: func(info pebble.CompactionInfo) {
			if info.Err == nil || errors.Is(info.Err, pebble.ErrCancelledCompaction) {
				s.compactFailures.Store(0)
				if info.Err == nil {
					s.compactionWorked()
				}
				return
			}
			s.ops.printf("Compaction error: %v", info.Err)
			s.compactionFailed(info.Err)
			wait := backoff(s.compactFailures.Add(1))
			s.compactAfter.Store(time.Now().Add(wait).UnixNano())
			s.engine.compactor.pokeAfter(wait + time.Millisecond)
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			s.stalls.Add(1)
			s.stalled.Store(&info.Reason)
			if s.compactFault.Load() != nil {
				s.watchStall(&info.Reason)
			}
			s.log(LevelInfo, "writes stall: "+info.Reason) // back-pressure, no fault; Stats tells
			s.ops.printf("Write stall: %s", info.Reason)
		},
		WriteStallEnd: func() {
			s.stalled.Store(nil)
			s.ops.printf("Write stall ended")
		},
	}
}

// noCompaction reports whether the store must not start a compaction now: after
// a failure for a while, and behind the fence not at all, unless a writer that
// got in before waits for it.
func (s *store) noCompaction() bool {
	if s.fence.up.Load() {
		return s.stalled.Load() == nil
	}
	return time.Now().UnixNano() < s.compactAfter.Load()
}

// delayFlush makes a flush that has failed wait before it is run again. It ends
// when the store is parked or closed.
func (s *store) delayFlush() {
	wait := backoff(s.flushFailures.Load())
	if wait == 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.parked:
	case <-s.quit:
	}
}
