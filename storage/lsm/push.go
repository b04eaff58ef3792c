package lsm

import "time"

// pushAfter is how long a write that was not synced may be in this process only.
// Pebble writes its log in blocks of 32 KiB and keeps the last, unless a sync
// comes: a store that is written little would keep its last rows in memory for ever,
// and lose them with the process. So a sync comes that long after the first of them.
const pushAfter = 5 * time.Second

// pushLater has the log pushed to the disk, if nobody has yet.
func (s *store) pushLater() {
	if !s.pushing.Load() && s.pushing.CompareAndSwap(false, true) {
		time.AfterFunc(pushAfter, s.push)
	}
}

// push brings the log to the disk. A store that is closed meanwhile has done so; the
// failure of a sync parks the store, as always.
func (s *store) push() {
	s.pushing.Store(false) // first: what is written from now on may miss the sync
	_ = s.Apply(nil, true)
}
