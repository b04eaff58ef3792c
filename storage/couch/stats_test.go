package couch

import (
	"fmt"
	"strings"
	"testing"

	"scanode/storage"
	"scanode/storage/couch/file"
)

// TestAccounting: what Stats says that a compaction would leave is, within 5 %, what it
// leaves: for rows in and out of order, one by one and many at once, small and large,
// compressed and not. All of it is the file's size afterwards, so nothing can be left out.
func TestAccounting(t *testing.T) {
	for _, compression := range []string{"none", "snappy"} {
		for _, mode := range []string{"log", "header"} {
			for _, batch := range []int{1, 100} {
				for _, ordered := range []bool{true, false} {
					for _, size := range []int{20, 200, 2000} {
						name := fmt.Sprintf("%s/%s/%d/ordered=%v/%d", compression, mode, batch, ordered, size)
						t.Run(name, func(t *testing.T) {
							if testing.Short() && size != 200 {
								t.Skip("long")
							}
							t.Parallel()
							n := 1_000_000 / (size + 60)
							if mode == "header" && batch == 1 {
								n = min(n, 3000) // of which a third have a header each
							}
							s := openIn(t, newMem(t), "compression", compression, "commit", mode, "write_buffer_size", int64(256<<10))
							accountFor(t, s, n, batch, ordered, size)
						})
					}
				}
			}
		}
	}
}

func accountFor(t *testing.T, s *store, n, batch int, ordered bool, size int) {
	rng := newRand(t)
	order := rng.Perm(n)
	var ops []storage.Op
	for i := range n {
		k := i
		if !ordered {
			k = order[i]
		}
		value := make([]byte, size/2+rng.IntN(size))
		for j := range value {
			value[j] = "abcdefgh01234567"[rng.IntN(16)]
		}
		ops = append(ops, storage.Op{Key: fmt.Appendf(nil, "a key like %09d", k), Value: value})
		if len(ops) == batch || i == n-1 {
			if err := s.Apply(ops, batch == 1 && i%3 == 0); err != nil {
				t.Fatal(err)
			}
			ops = nil
		}
	}
	err := s.alone(func() error {
		err := s.writer.flush()
		s.writer.publish()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	v := s.acquire()
	e, err := s.estimates.of(v)
	v.gen.release()
	if err != nil || e.rows != int64(n) || e.fill <= 0 || e.fill > 1 {
		t.Fatalf("%+v, %v", e, err)
	}
	before := s.current.Load().gen.file.Size()
	<-s.compact().done
	after := s.current.Load().gen.file.Size()
	t.Logf("%d bytes became %d, %d were expected", before, after, e.compacted)
	if off := after - e.compacted; off*20 > after || off*20 < -after {
		t.Fatalf("%d bytes are left, %d were expected", after, e.compacted)
	}
	st, err := s.Stats()
	if err != nil || st.TableBytes+after/100+3*file.BlockSize < after || st.DiskBytes != after {
		t.Fatalf("%d bytes of %d are nodes, %+v, %v", st.TableBytes, after, st, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestStatsText: everything an operator looks for is there, and the numbers are those of
// what was done.
func TestStatsText(t *testing.T) {
	t.Parallel()
	s := openIn(t, newMem(t), "log_batches", int64(100), "write_buffer_size", int64(1<<20))
	for i := range 130 {
		if err := s.Apply(batchOf(i)[:1], i%10 == 0); err != nil {
			t.Fatal(err)
		}
	}
	st, err := s.Stats()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"tree: 100 rows, depth ", "garbage", "would leave about", "commits: 2 headers and 13 syncs", "log: 30 batches in", "compactions: 0 since open, 0 failed"} {
		if !strings.Contains(st.Text, want) {
			t.Errorf("%q is not in\n%s", want, st.Text)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
