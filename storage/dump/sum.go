package dump

import (
	"fmt"
	"math/bits"

	"github.com/zeebo/xxh3"
)

// Sum adds up rows, in any order: two sets of rows with the same sum are taken for the
// same. The zero value is the sum of no rows.
type Sum struct {
	Rows       int64
	KeyBytes   int64
	ValueBytes int64
	// High and Low are the sum of a 128 bit hash of each row, modulo 2^128: a row that
	// is missing, changed or there twice changes it, and two changes do not cancel out
	// but by a chance of 2^-64 or less. It is no protection against somebody who wants
	// them to.
	High, Low uint64
}

// Add adds a row.
func (s *Sum) Add(key, value []byte) {
	s.Rows++
	s.KeyBytes += int64(len(key))
	s.ValueBytes += int64(len(value))
	// The key seeds the hash of the value, so bytes cannot move from one to the other.
	h := xxh3.Hash128Seed(value, xxh3.Hash(key))
	var carry uint64
	s.Low, carry = bits.Add64(s.Low, h.Lo, 0)
	s.High, _ = bits.Add64(s.High, h.Hi, carry)
}

// Bytes is the size of all keys and values.
func (s Sum) Bytes() int64 { return s.KeyBytes + s.ValueBytes }

// Hash is High and Low in hexadecimal.
func (s Sum) Hash() string { return fmt.Sprintf("%016x%016x", s.High, s.Low) }

// String shows all of it, the hash in hexadecimal.
func (s Sum) String() string {
	return fmt.Sprintf("%d rows, %d bytes of keys, %d of values, sum %s", s.Rows, s.KeyBytes, s.ValueBytes, s.Hash())
}
