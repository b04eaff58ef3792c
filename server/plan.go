package server

import (
	"scanode/etf"
	"scanode/etf/etftext"
	"scanode/filter"
	"scanode/scan"
)

// maxParts bounds what one split may ask for.
const maxParts = 1024

// explain answers {explain, Opts}: how a scan with these options would read rows.
// No store is needed for that.
func (c *call) explain() {
	req, err := parseScan(c.arg())
	if err != nil {
		c.fail(err)
		return
	}
	var columns []string
	if req.Form.Kind == scan.Select {
		columns = req.Form.Columns
	}
	c.okTerm(filter.Explain(req.Filter, columns...))
}

// split answers {split, Id, Opts, Parts}: the range of Opts in parts of similar
// size.
func (c *call) split() {
	id, _, err := readIDAndRest(c.arg())
	if err != nil {
		c.fail(err)
		return
	}
	o := newOptions(c.arg())
	ranges := o.ranges()
	if err := o.done(); err != nil {
		c.fail(err)
		return
	}
	arg := c.arg()
	parts, _, err := etf.ReadInt64(arg)
	if err != nil || parts < 1 || parts > maxParts || len(ranges) != 1 {
		c.fail(reasonf(tagBadRequest, "one range can be split into 1 to %d parts, not %d into %s", maxParts, len(ranges), etftext.FormatBytes(arg)))
		return
	}
	v, err := c.link.s.acquire(id)
	if err != nil {
		c.fail(err)
		return
	}
	defer v.release()
	cut, err := scan.Split(v.db, ranges[0], int(parts))
	if err != nil {
		c.fail(err)
		return
	}
	var list etf.List
	for _, r := range cut {
		list = append(list, etf.Tuple{boundTerm(r.Start), boundTerm(r.End), etf.Tuple{boolTerm(!r.StartExclusive), boolTerm(r.EndInclusive)}})
	}
	c.okTerm(list)
}

func boundTerm(b []byte) etf.Term {
	if b == nil {
		return etf.Atom("undefined")
	}
	return b
}

func boolTerm(v bool) etf.Term {
	if v {
		return etf.Atom("true")
	}
	return etf.Atom("false")
}
