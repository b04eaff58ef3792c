package server

import (
	"errors"
	"fmt"

	"scanode/etf"
	"scanode/filter"
	"scanode/scan"
	"scanode/storage"
)

// tag is the first element of a reason. The table is mirrored by -type reason()
// in src/scanode.erl and by docs/protocol.md §4; a test compares the three.
type tag string

// Reasons that stand alone.
const (
	tagClosed   tag = "closed"
	tagBusy     tag = "busy"
	tagDeadline tag = "deadline"
)

// Reasons that come with a text: {Tag, Text}.
const (
	tagBadRequest tag = "bad_request"
	tagBadOption  tag = "bad_option"
	tagBadFilter  tag = "bad_filter"
	tagBadRow     tag = "bad_row"
	tagBadPath    tag = "bad_path"
	tagMissing    tag = "missing"
	tagExists     tag = "exists"
	tagLocked     tag = "locked"
	tagForeign    tag = "foreign"
	tagCorrupt    tag = "corrupt"
	tagParked     tag = "parked"
	tagIO         tag = "io"
	tagInternal   tag = "internal"

	tagTooManyGroups tag = "too_many_groups"
	tagOverflow      tag = "overflow"
)

// bareTags and textTags are all reasons there are.
var (
	bareTags = []tag{tagClosed, tagBusy, tagDeadline}
	textTags = []tag{tagBadRequest, tagBadOption, tagBadFilter, tagBadRow, tagBadPath, tagMissing, tagExists, tagLocked,
		tagForeign, tagCorrupt, tagParked, tagIO, tagInternal, tagTooManyGroups, tagOverflow}
)

// reason is an error in the form in which it is sent.
type reason struct {
	tag  tag
	text string // empty for a reason that stands alone
}

func (r *reason) Error() string {
	if r.text == "" {
		return string(r.tag)
	}
	return string(r.tag) + ": " + r.text
}

var (
	errClosed   = &reason{tag: tagClosed}
	errBusy     = &reason{tag: tagBusy}
	errDeadline = &reason{tag: tagDeadline}
)

func reasonf(t tag, format string, args ...any) *reason {
	return &reason{tag: t, text: fmt.Sprintf(format, args...)}
}

// append adds the reason as a term: a text is sent as a binary, so no atom is
// ever made from data.
func (r *reason) append(dst []byte) []byte {
	if r.text == "" {
		return etf.AppendAtom(dst, etf.Atom(r.tag))
	}
	dst = etf.AppendAtom(etf.AppendTupleHeader(dst, 2), etf.Atom(r.tag))
	return etf.AppendBinary(dst, []byte(r.text))
}

// storageTags maps the engine contract's errors to reasons; the first that
// matches counts.
var storageTags = []struct {
	err error
	tag tag
}{
	{storage.ErrParked, tagParked},
	{storage.ErrCorrupt, tagCorrupt},
	{storage.ErrMissing, tagMissing},
	{storage.ErrExists, tagExists},
	{storage.ErrLocked, tagLocked},
	{storage.ErrForeign, tagForeign},
	{storage.ErrOption, tagBadOption},
	{scan.ErrOverAck, tagBadRequest},
	{scan.ErrGroups, tagTooManyGroups},
	{scan.ErrOverflow, tagOverflow},
}

// reasonOf turns any error of the packages below into a reason.
func reasonOf(err error) *reason {
	var r *reason
	if errors.As(err, &r) {
		return r
	}
	var row *scan.RowError
	if errors.As(err, &row) {
		return reasonf(tagBadRow, "%v", row)
	}
	var bad *filter.Error
	if errors.As(err, &bad) {
		return reasonf(tagBadFilter, "%v", bad)
	}
	for _, t := range storageTags {
		if errors.Is(err, t.err) {
			return reasonf(t.tag, "%v", err)
		}
	}
	if errors.Is(err, storage.ErrClosed) {
		return errClosed
	}
	return reasonf(tagIO, "%v", err)
}

// outcome says of a failed write whether its batch is in the store.
type outcome string

const (
	rejected outcome = "rejected"
	unknown  outcome = "unknown"
)

func outcomeOf(err error) outcome {
	if errors.Is(err, storage.ErrUnknown) {
		return unknown
	}
	return rejected
}
