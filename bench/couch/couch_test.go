package main

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// What couch_btree wrote is the oracle: to the byte where it is known what was written and
// nothing is compressed, within 1 % where Snappy is, which is another one here.

func TestLettersAreTheRecorded(t *testing.T) {
	for _, s := range all() {
		l, err := runLetters(s)
		if err != nil {
			t.Fatal(err)
		}
		r := find(recorded("letters"), "state", s.name)
		switch {
		case r != nil:
			if float64(l.bytes) != r.number("bytes") || float64(l.nodes) != r.number("nodes") || strings.Join(l.garbage, " ") != r["garbage"] {
				t.Errorf("%s: %+v, recorded %v", s.name, l, r)
			}
		case slices.Contains(ours, s):
			// The best that can be had: each value written once.
			if l.bytes > 6692 || len(l.garbage) > 0 {
				t.Errorf("%s: %+v", s.name, l)
			}
		}
	}
}

// randomPercent is how far figures may be from recorded ones whose order of keys is not known.
const randomPercent = 6

func TestViewsAreTheRecorded(t *testing.T) {
	for i, c := range cells("") {
		if c.size > 10 && (c.query == "each" || c.compression != "none" || testing.Short()) {
			continue // for the time it takes
		}
		r := recorded("views")[i]
		for _, s := range theirs {
			w, err := c.run(s)
			if err != nil {
				t.Fatal(err)
			}
			percent := 0.0
			if c.compression == "snappy" {
				percent = 1
			}
			if c.keys == "rand" {
				percent = randomPercent
			}
			check := func(what string, got int64) {
				if off := 100 * math.Abs(float64(got)/r.number(what)-1); off > percent {
					t.Errorf("%v: %s is %d, recorded %v, %.2f %% off", c, what, got, r.number(what), off)
				}
			}
			check(s.name, w.bytes)
			if s.name == "compat" {
				check("live", w.live)
			}
		}
	}
}

func TestChunksAreTheRecorded(t *testing.T) {
	for _, chunk := range recorded("chunks") {
		w, err := runChunks(theirs[3], int(chunk.number("chunk")), "seq")
		if err != nil {
			t.Fatal(err)
		}
		if float64(w.bytes) != chunk.number("seq") {
			t.Errorf("%v: %d bytes an insert", chunk, w.bytes)
		}
	}
}

// TestHundredLarge does a part of the work on large values: every state leaves as many leaves
// as it does in all of it, in proportion.
func TestHundredLarge(t *testing.T) {
	for _, s := range theirs {
		l, err := largeCell{"snappy", "seq", s}.run(t.TempDir(), 100)
		if err != nil {
			t.Fatal(err)
		}
		if l.view.Leaves.Count != 50 || l.view.Rows != 100 {
			t.Errorf("%s: %+v", s.name, l.view)
		}
	}
}

func TestSpeedCellReads(t *testing.T) {
	for _, s := range []state{theirs[3], ours[0]} {
		if _, err := (speedCell{order: "rand", batch: 10, rows: 2000, state: s, hold: 300}).run(t.TempDir()); err != nil {
			t.Error(err)
		}
	}
}

// TestStoreOverhead holds commits of one row to what a header and a log record need.
func TestStoreOverhead(t *testing.T) {
	for commit, most := range map[string]float64{"header": 4096 + 512, "log": 600} {
		r, err := runStore(1000, "rand", map[string]any{"commit": commit})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.1f bytes a commit", commit, r.perCommit)
		if r.perCommit > most {
			t.Errorf("%s: %.1f bytes a commit, %.0f allowed", commit, r.perCommit, most)
		}
	}
}
