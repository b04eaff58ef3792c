package btree

import (
	"bytes"
	"errors"
	"testing"

	"scanode/etf"
)

// TestNodeRows: a node of more rows than are held in memory is none, whatever its size.
func TestNodeRows(t *testing.T) {
	for _, c := range []struct {
		rows int
		want error
	}{{1, nil}, {maxRows, nil}, {maxRows + 1, ErrNode}} {
		b := etf.AppendAtom(etf.AppendTupleHeader(etf.AppendVersion(nil), 2), "kv_node")
		b = etf.AppendListHeader(b, c.rows)
		b = append(b, bytes.Repeat([]byte{etf.TagSmallTuple, 2, etf.TagNil, etf.TagNil}, c.rows)...)
		var n Node
		if err := n.Parse(etf.AppendNil(b)); !errors.Is(err, c.want) || err == nil && len(n.Rows) != c.rows {
			t.Errorf("%d rows: %v, %d read", c.rows, err, len(n.Rows))
		}
	}
}

// TestSkipTerm: terms of any depth have an end, and others none.
func TestSkipTerm(t *testing.T) {
	for _, depth := range []int{1, etf.MaxDepth + 1, 100_000} {
		b := append(bytes.Repeat([]byte{etf.TagSmallTuple, 1}, depth), etf.TagNil, 'x')
		if rest, err := SkipTerm(b); err != nil || string(rest) != "x" {
			t.Errorf("depth %d: %q, %v", depth, rest, err)
		}
		if _, err := SkipTerm(b[:2*depth]); !errors.Is(err, ErrNode) {
			t.Errorf("depth %d, cut: %v", depth, err)
		}
	}
}
