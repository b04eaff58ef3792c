package server

import (
	"bytes"
	"encoding/binary"
	"io"
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/etf"
	"scanode/storage"
	"scanode/storage/lsm"
)

// idMark stands for the id of the open store in the inputs, as a SMALL_BIG_EXT of
// eight bytes, and iteratorMark for that of an iterator of it.
var (
	idMark       = []byte("IDIDIDID")
	iteratorMark = []byte("ITITITIT")
)

func encoded(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			b = etf.AppendAtom(b, etf.Atom(p))
		case []byte:
			b = append(b, p...)
		case int:
			b = etf.AppendTupleHeader(b, p)
		}
	}
	return b
}

// FuzzRequest claims: whatever message arrives, the server lives and answers the
// next call, what it sends is a term the BEAM accepts (bean checks), a call that
// can be answered is answered once, and what was synced is still there after the
// store is opened anew.
func FuzzRequest(f *testing.F) {
	from := etf.AppendRef(etf.AppendPid(etf.AppendTupleHeader(nil, 2), pid(7)), newRef())
	id := append([]byte{etf.TagSmallBig, 8, 0}, idMark...)
	iterator := append([]byte{etf.TagSmallBig, 8, 0}, iteratorMark...)
	empty := etf.AppendMapHeader(nil, 0)
	key := etf.AppendBinary(nil, []byte("k"))
	put := encoded(3, "put", key, key)
	list := func(elem []byte) []byte { return etf.AppendNil(append(etf.AppendListHeader(nil, 1), elem...)) }
	filter := encoded(3, "=", encoded(3, "field", key, "varchar"), encoded(2, "const", key))
	for _, req := range [][]byte{
		encoded("info"), encoded(2, "info", id), encoded(3, "get", id, key), encoded(4, "write", id, list(put), empty),
		encoded(2, "close", id), encoded(2, "snapshot", id), encoded(3, "open", etf.AppendBinary(nil, []byte("/x")), empty),
		encoded(2, "explain", append(etf.AppendAtom(etf.AppendMapHeader(nil, 1), "filter"), filter...)),
		encoded(4, "split", id, empty, etf.AppendInt64(nil, 3)), encoded(3, "iterator", id, empty), encoded(3, "snapshot", id, empty),
		encoded(4, "iterator_read", iterator, encoded(2, "upto", key), empty),
		encoded(4, "iterator_read", iterator, etf.AppendAtom(nil, "next"), empty), encoded(2, "close", iterator), encoded(2, "handles", id), encoded(2, "is_empty", id),
		encoded(3, "destroy", etf.AppendBinary(nil, []byte("/db")), empty), encoded(3, "repair", etf.AppendBinary(nil, []byte("/none")), empty), {104, 1, 104, 1, 104, 1, 106},
	} {
		f.Add(encoded(3, "$gen_call", from, req))
	}
	for _, opts := range [][]byte{empty, append(etf.AppendAtom(etf.AppendMapHeader(nil, 1), "filter"), filter...),
		append(etf.AppendAtom(etf.AppendMapHeader(nil, 1), "limit"), etf.AppendInt64(nil, 1)...)} {
		f.Add(encoded(4, "scan", from, id, opts))
	}
	f.Add(encoded(3, "scan_ack", etf.AppendRef(nil, newRef()), etf.AppendInt64(nil, 5)))
	f.Add(encoded(3, "scan_to", etf.AppendRef(nil, newRef()), etf.AppendPid(nil, pid(8))))
	f.Add([]byte{108, 255, 255, 255, 255, 106})

	f.Fuzz(func(t *testing.T, msg []byte) {
		engine := lsm.New(lsm.Config{FS: vfs.NewMem()})
		defer engine.Close()
		s := New(Config{Version: "fuzz", Engines: map[string]storage.Engine{"lsm": engine}, Resolve: AbsolutePath,
			Limits: DefaultLimits, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		b := attach(t, s)
		defer b.die()
		store := b.open(pid(1), "/db")
		synced := etf.Tuple{etf.Atom("write"), store, etf.List{etf.Tuple{etf.Atom("put"), []byte("synced"), []byte("v")}}, etf.Map{opt("sync", etf.Atom("true"))}}
		b.expect(pid(1), synced, "ok")

		it := b.handle(pid(1), iteratorReq(store))
		msg = bytes.ReplaceAll(msg, idMark, binary.LittleEndian.AppendUint64(nil, uint64(store)))
		msg = bytes.ReplaceAll(msg, iteratorMark, binary.LittleEndian.AppendUint64(nil, uint64(it)))
		if b.link.Message(msg) == nil {
			if to, tag, ok := callFrom(msg); ok {
				if got := b.receive(to).(etf.Tuple); len(got) != 2 || !bytes.Equal(mustAppend(t, got[0]), tag) {
					t.Fatalf("the reply to %x carries %v", msg, got)
				}
			}
		}
		b.expect(pid(1), etf.Atom("info"), "{ok,#{…")
		if t.Failed() {
			return
		}
		b.ask(pid(1), etf.Tuple{etf.Atom("close"), store})
		again := b.ask(pid(1), etf.Tuple{etf.Atom("open"), []byte("/db"), etf.Map{}}).(etf.Tuple)
		if touchesSynced(msg) || again[0] != ok {
			return // it may have deleted the key, or opened the directory itself
		}
		b.expect(pid(1), get(again[1].(int64), "synced"), `{ok,<<"v">>}`)
	})
}

// callFrom says where the reply to a message goes, if it is a call.
func callFrom(msg []byte) (to etf.Term, tag []byte, ok bool) {
	n, b, err := etf.ReadTupleHeader(msg)
	if err != nil || n != 3 {
		return nil, nil, false
	}
	name, b, err := etf.ReadAtom(b)
	if err != nil || string(name) != "$gen_call" {
		return nil, nil, false
	}
	addr, tag, _, err := readFrom(b)
	if err != nil {
		return nil, nil, false
	}
	v, _, err := etf.Decode(tag, etf.DefaultLimits)
	if err != nil {
		return nil, nil, false
	}
	canonical, err := etf.AppendTerm(nil, v)
	if addr.alias.Len > 0 {
		return addr.alias, canonical, err == nil
	}
	return addr.pid, canonical, err == nil
}

func mustAppend(t *testing.T, v etf.Term) []byte {
	b, err := etf.AppendTerm(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// touchesSynced says whether a message may have written the key that is checked.
func touchesSynced(msg []byte) bool { return bytes.Contains(msg, []byte("synced")) }
