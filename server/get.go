package server

import (
	"encoding/binary"
	"errors"

	"scanode/etf"
	"scanode/etf/etftext"
	"scanode/storage"
)

// get answers {get, Id, Key}.
func (c *call) get() {
	id, _, err := readIDAndRest(c.arg())
	if err != nil {
		c.fail(err)
		return
	}
	arg := c.arg()
	key, _, err := etf.ReadBinary(arg)
	if err != nil {
		c.fail(reasonf(tagBadRequest, "a key must be a binary, got %s", etftext.FormatBytes(arg)))
		return
	}
	v, err := c.link.s.acquire(id)
	if err != nil {
		c.fail(err)
		return
	}
	defer v.release()
	c.link.replies <- struct{}{}
	defer func() { <-c.link.replies }()

	// The value is read into the reply itself, behind a length that is filled
	// in afterwards.
	reply := etf.AppendAtom(etf.AppendTupleHeader(c.begin(512), 2), "ok")
	reply = etf.AppendBinaryHeader(reply, 0)
	head := len(reply)
	reply, err = v.source.Get(reply, key)
	switch {
	case err == nil:
		binary.BigEndian.PutUint32(reply[head-4:], uint32(len(reply)-head))
		c.send(reply)
	case errors.Is(err, storage.ErrNotFound):
		c.send(etf.AppendAtom(c.begin(16), "not_found"))
	default:
		c.fail(err)
	}
}
