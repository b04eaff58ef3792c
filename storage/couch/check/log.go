package check

import (
	"errors"
	"fmt"

	"scanode/storage"
	"scanode/storage/couch"
)

// checkLog looks at what lies behind the header of a store: batches that are acknowledged
// and not in the tree yet.
func (in *inspection) checkLog() error {
	c := in.a.store
	if in.a.fileType != TypeStore {
		return nil
	}
	if c.Copied == "part" {
		in.rep.note(Finding{Text: "a compaction has copied a part of another file into this one", Offset: in.header.Ptr})
	}
	if !c.MayLog {
		return nil
	}
	batches, bytes, err := couch.MeasureLog(in.f, in.header, c.Seq)
	if err != nil && !errors.Is(err, storage.ErrCorrupt) {
		return err
	}
	end := in.header.Ptr + in.header.Size
	in.logBytes = bytes
	in.rep.note(Finding{
		Text:   fmt.Sprintf("the store was not closed: %d batches lie in a log behind the header, and whoever appends to the file without reading them loses them", batches),
		Offset: end,
	})
	if bytes == 0 {
		return nil
	}
	return in.extent(end, bytes, useLog)
}
