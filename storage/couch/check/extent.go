package check

import "fmt"

// extent remembers what size bytes at ptr are used for.
func (in *inspection) extent(ptr, size int64, u use) error {
	if in.saving {
		return in.failed
	}
	// The tag behind a chunk that ends with a block may have been cut off.
	size = min(size, in.f.Size()-ptr)
	in.keep(&in.extents, record{uint64(ptr), uint64(size), uint64(u)})
	return in.failed
}

// checkBytes says for every byte of the file what it is used for. It goes through
// the extents in the order of the file; what lies between two of them is garbage.
func (in *inspection) checkBytes() error {
	in.phase("bytes")
	in.rep.Bytes = &Bytes{}
	b := in.rep.Bytes
	end := in.f.Size()
	if in.rep.Generation > 0 {
		end = min(end, in.header.Ptr+in.header.Size)
	}
	orphans := newOrphans(in)
	defer orphans.close()
	var pos int64
	var last record
	for r, err := range in.extents.sorted() {
		if err != nil {
			return err
		}
		ptr, size := int64(r.a), int64(r.b)
		if ptr >= end {
			continue
		}
		if r == last && r.c != uint64(useKP) && r.c != uint64(useKV) {
			continue // the same attachment of several revisions
		}
		if ptr < pos && size > 0 {
			in.overlap(last, r)
		}
		if ptr > pos {
			if err := orphans.gap(pos, ptr); err != nil {
				return err
			}
		}
		if e := min(ptr+size, end); e > max(pos, ptr) {
			b.add(use(r.c), e-max(pos, ptr))
			in.progress(e - max(pos, ptr))
			pos = e
			last = r
		}
	}
	if pos < end {
		if err := orphans.gap(pos, end); err != nil {
			return err
		}
	}
	if err := orphans.finish(); err != nil {
		return err
	}
	b.add(useNewer, in.f.Size()-end)
	return in.failed
}

var useNames = [uses]string{
	"header", "kp node", "kv node", "body", "body", "attachment", "term", "log", "header",
	"kp node", "kv node", "body", "attachment", "term", "log", "padding", "chunk", "bytes", "bytes",
}

// overlap reports that y begins within x.
func (in *inspection) overlap(x, y record) {
	text := fmt.Sprintf("%s of %d bytes overlaps the %s at %d", useNames[y.c], y.b, useNames[x.c], x.a)
	if x == y {
		text = fmt.Sprintf("%s is used twice", useNames[y.c])
	}
	in.rep.damage(Finding{Text: text, Offset: int64(y.a)})
}
