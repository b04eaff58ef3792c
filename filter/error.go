package filter

import (
	"strings"
	"unicode/utf8"

	"scanode/etf"
	"scanode/etf/etftext"
)

// maxShownBytes bounds the text of one value inside an error.
const maxShownBytes = 200

// Error says why a filter cannot be used.
type Error struct {
	// Path leads to the culprit: positions in nested tuples, counted from 1 as
	// erlang:element/2 does. "2.3" is element 3 of element 2 of the filter; the
	// empty path is the filter itself.
	Path string
	// Op is the operator of the innermost expression around the culprit, empty
	// where none could be read.
	Op string
	// Msg says what is wrong, with the offending value as Erlang text.
	Msg string
}

// Error returns one line for the author of the filter.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("filter")
	if e.Path != "" {
		b.WriteString(", element ")
		b.WriteString(e.Path)
	}
	if e.Op != "" {
		b.WriteString(", operator ")
		b.WriteString(show(etf.Atom(e.Op)))
	}
	b.WriteString(": ")
	b.WriteString(e.Msg)
	return b.String()
}

// RowError says why a stored row cannot be matched. It ends a scan: a row that
// cannot be judged must not be dropped silently.
type RowError struct {
	// Field is the field being read, empty if the fault is not inside one.
	Field string
	// Msg says what was wanted and what was found.
	Msg string
}

// Error returns one line. It does not name the key: Match never sees it.
func (e *RowError) Error() string {
	if e.Field == "" {
		return e.Msg
	}
	return "field " + show([]byte(e.Field)) + ": " + e.Msg
}

// show prints t as Erlang text of bounded length.
func show(t etf.Term) string { return clip(etftext.Format(t)) }

// showBytes prints an encoded term as Erlang text of bounded length.
func showBytes(b []byte) string { return clip(etftext.FormatBytes(b)) }

// clip cuts s to maxShownBytes without splitting a character.
func clip(s string) string {
	if len(s) <= maxShownBytes {
		return s
	}
	n := maxShownBytes
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
