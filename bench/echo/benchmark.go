package main

import (
	"fmt"

	"scanode/etf"
)

// peer is what node.Link and port.Conn have in common.
type peer interface {
	Send(to etf.Pid, head, body []byte) error
	SendAlias(alias etf.Ref, head, body []byte) error
}

// benchmark answers
//
//	{ping, Pid}           pong
//	{'$gen_call', From, _}  {Tag, pong}
//	{m, _}                nothing, but it is counted
//	{count, Pid}          how many
//	{small, Pid, N}       N times {m, 1000}
//	{lists, Pid, N}       N lists of 100 {Key, Value} of 16 and 100 bytes
//	{binaries, Pid, N}    N binaries of 1,000,000 bytes
//	{batches, Pid, N}     N times {batch, Bin}, Bin an encoded list of rows of 128 KiB
type benchmark struct {
	count                                 int64
	small, list, binary, batchHead, batch []byte
}

func newBenchmark() *benchmark {
	b := &benchmark{}
	b.small = etf.AppendInt64(etf.AppendAtom(etf.AppendTupleHeader(nil, 2), "m"), 1000)
	b.list = etf.AppendListHeader(nil, 100)
	for i := range 100 {
		b.list = row(b.list, i)
	}
	b.list = etf.AppendNil(b.list)
	b.binary = make([]byte, 1_000_000)
	const rows = 1000 // of 131 bytes
	b.batch = etf.AppendListHeader(etf.AppendVersion(nil), rows)
	for i := range rows {
		b.batch = row(b.batch, i)
	}
	b.batch = etf.AppendNil(b.batch)
	b.batchHead = etf.AppendAtom(etf.AppendTupleHeader(nil, 2), "batch")
	return b
}

func row(dst []byte, i int) []byte {
	dst = etf.AppendBinary(etf.AppendTupleHeader(dst, 2), fmt.Appendf(nil, "%016d", i))
	return etf.AppendBinary(dst, make([]byte, 100))
}

func (b *benchmark) message(p peer, msg []byte) error {
	n, rest, err := etf.ReadTupleHeader(msg)
	if err != nil {
		return err
	}
	name, rest, err := etf.ReadAtom(rest)
	if err != nil {
		return err
	}
	switch string(name) {
	case "m":
		b.count++
		return nil
	case "$gen_call":
		return b.call(p, rest)
	}
	pid, rest, err := etf.ReadPid(rest)
	if err != nil {
		return err
	}
	times := int64(1)
	if n == 3 {
		if times, _, err = etf.ReadInt64(rest); err != nil {
			return err
		}
	}
	var head, body []byte
	switch string(name) {
	case "ping":
		head = etf.AppendAtom(nil, "pong")
	case "count":
		head, b.count = etf.AppendInt64(nil, b.count), 0
	case "small":
		head = b.small
	case "lists":
		head, body = nil, b.list
	case "binaries":
		head, body = etf.AppendBinaryHeader(nil, len(b.binary)), b.binary
	case "batches":
		head, body = etf.AppendBinaryHeader(b.batchHead, len(b.batch)), b.batch
	default:
		return fmt.Errorf("unknown: %s", name)
	}
	for range times {
		if err := p.Send(pid, head, body); err != nil {
			return err
		}
	}
	return nil
}

// call answers a gen_server:call, to its alias where it has one.
func (b *benchmark) call(p peer, from []byte) error {
	_, rest, err := etf.ReadTupleHeader(from)
	if err != nil {
		return err
	}
	pid, tag, err := etf.ReadPid(rest)
	if err != nil {
		return err
	}
	after, err := etf.Skip(tag)
	if err != nil {
		return err
	}
	tag = tag[:len(tag)-len(after)]
	reply := append(etf.AppendTupleHeader(nil, 2), tag...)
	reply = etf.AppendAtom(reply, "pong")
	if n, rest, err := etf.ReadListHeader(tag); err == nil && n == 1 {
		if _, rest, err = etf.ReadAtom(rest); err == nil {
			if ref, _, err := etf.ReadRef(rest); err == nil {
				return p.SendAlias(ref, reply, nil)
			}
		}
	}
	return p.Send(pid, reply, nil)
}
