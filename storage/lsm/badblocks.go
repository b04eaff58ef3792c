package lsm

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Pebble looks, each time it reads a block whose checksum is wrong, for a single
// bit that would make it right: it flips the bits of 40 KiB one by one and computes
// the checksum of the block for each. That is a second of a processor's time for a
// block of 32 KiB. So a block that was found damaged is not read again for a while:
// a caller that asks for all its rows, one by one, would otherwise wait for minutes.
const (
	// Then it is read anew, as what was wrong may have been the reading.
	badBlockFor = time.Minute
	// maxBadBlocks bounds what is remembered. A store with more is slow.
	maxBadBlocks = 1024
)

// badBlocks are the damaged blocks of a store's tables.
type badBlocks struct {
	now  func() time.Time
	some atomic.Bool // spares readers of a sound store the lock

	mu     sync.Mutex
	blocks map[blockPlace]badBlock
}

// blockPlace is where a block begins.
type blockPlace struct {
	table string
	off   int64
}

type badBlock struct {
	length int64 // without checksum and kind
	err    error // as pebble has it
	until  time.Time
}

// note remembers the block that err, an error of pebble, speaks of. It returns
// false if err is what at returned, and so known.
func (b *badBlocks) note(table string, err error) bool {
	place, length, ok := blockOf(err)
	if !ok {
		return true
	}
	place.table = table
	now := b.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if old, known := b.blocks[place]; known && now.Before(old.until) {
		return false
	}
	if b.blocks == nil {
		b.blocks = make(map[blockPlace]badBlock)
	}
	if _, known := b.blocks[place]; known || len(b.blocks) < maxBadBlocks {
		b.blocks[place] = badBlock{length: length, err: err, until: now.Add(badBlockFor)}
		b.some.Store(true)
	}
	return true
}

// blockOf finds "block OFFSET/LENGTH: " in an error.
func blockOf(err error) (place blockPlace, length int64, ok bool) {
	const word = "block "
	text := err.Error()
	i := strings.Index(text, word)
	if i < 0 {
		return blockPlace{}, 0, false
	}
	n, _ := fmt.Sscanf(text[i+len(word):], "%d/%d:", &place.off, &length)
	return place, length, n == 2
}

// at returns the error of the read of n bytes at off if that is a damaged block.
func (b *badBlocks) at(table string, off int64, n int) error {
	if !b.some.Load() {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	bad, known := b.blocks[blockPlace{table, off}]
	if !known || int64(n) < bad.length || !b.now().Before(bad.until) {
		return nil
	}
	return bad.err
}
