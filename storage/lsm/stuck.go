package lsm

import (
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Pebble holds up writers until compactions have made room on level 0, and for
// ever when they cannot: one that meets a damaged block fails each time, and is
// tried every five minutes. A caller who waits for his write cannot know. So a
// store whose writers wait, while compactions fail and none runs, is parked
// after stuckTime, as one is whose flushes fail: writes end with an error, Close
// comes back, and the damaged table is Repair's.
const stuckTime = 3 * time.Second

// compactionFault is the last failure of a compaction, as long as it matters.
type compactionFault struct{ error }

// compactionFailed notes a failure that is not a cancellation. It is called with
// the database locked.
func (s *store) compactionFailed(err error) {
	s.compactFault.Store(&compactionFault{err})
	if why := s.stalled.Load(); why != nil {
		s.watchStall(why)
	}
}

// compactionWorked forgets the failures that time can heal. Damage stays where
// it is, whatever is compacted beside it.
func (s *store) compactionWorked() {
	if fault := s.compactFault.Load(); fault != nil && !pebble.IsCorruptionError(fault.error) {
		s.compactFault.CompareAndSwap(fault, nil)
	}
}

// watchStall looks again at a stall, which is known by its reason's address,
// when it has lasted stuckTime.
func (s *store) watchStall(why *string) {
	time.AfterFunc(stuckTime, func() {
		fault := s.compactFault.Load()
		switch {
		case fault == nil || s.stalled.Load() != why || s.cause() != nil:
		case s.member.isRunning():
			s.watchStall(why)
		default:
			s.park(fmt.Errorf("writes wait for compactions that fail: %w", fault.error))
		}
	})
}
