package check

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"scanode/etf"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

// nested is {"a": {"a": … 1}} of so many objects, as CouchDB keeps JSON.
func nested(levels int) []byte {
	inner := etf.AppendInt64(nil, 1)
	for range levels {
		pair := append(etf.AppendBinary(etf.AppendTupleHeader(nil, 2), []byte("a")), inner...)
		inner = etf.AppendNil(append(etf.AppendListHeader(etf.AppendTupleHeader(nil, 1), 1), pair...))
	}
	return inner
}

// leafOf is a leaf of these rows.
func leafOf(rows ...btree.Row) []byte {
	b := etf.AppendListHeader(etf.AppendAtom(etf.AppendTupleHeader(etf.AppendVersion(nil), 2), "kv_node"), len(rows))
	for _, r := range rows {
		b = append(append(etf.AppendTupleHeader(b, 2), r.Key...), r.Value...)
	}
	return etf.AppendNil(b)
}

// rootOf is the root of a tree of one leaf.
func rootOf(c file.Chunk, reduction []byte) []byte {
	return btree.Pointer{Ptr: c.Ptr, Reduction: reduction, Size: c.Size}.Append(nil)
}

// database is a header's term. What is left out is missing.
func database(updateSeq int64, ids, seqs, local, purges, purgesBySeq, security []byte) []byte {
	h := newDatabaseHeader()
	h[dbUpdateSeq] = etf.AppendInt64(nil, updateSeq)
	for i, b := range map[int][]byte{dbIDTree: ids, dbSeqTree: seqs, dbLocalTree: local, dbPurgeTree: purges, dbPurgeSeqTree: purgesBySeq, dbSecurity: security} {
		if b != nil {
			h[i] = b
		}
	}
	return appendTuple(h)
}

var noReduction = etf.AppendNil(nil)

// TestNestedTerms: JSON may be nested deeper than terms that etf reads, and that is no
// damage. What CouchDB writes of it is the same at any depth.
func TestNestedTerms(t *testing.T) {
	for _, levels := range []int{1, 85, 86, 1000} {
		b := forgeHeader(t, func(add func([]byte) file.Chunk) []byte {
			local := append(etf.AppendInt64(etf.AppendTupleHeader(nil, 2), 1), nested(levels)...)
			leaf := add(leafOf(btree.Row{Key: enc(t, `<<"_local/x">>`), Value: local}))
			security := add(append(etf.AppendVersion(nil), nested(levels)...))
			return database(0, nil, nil, rootOf(leaf, noReduction), nil, nil, etf.AppendInt64(nil, security.Ptr))
		})
		fine(t, inspectBytes(t, "nested.couch", b, Options{}))
		s, _, err := salvageBytes(t, "nested.couch", b, SalvageOptions{})
		if err != nil || s.LocalDocs != 1 || s.LostCount != 0 {
			t.Errorf("%d levels: %+v, %v", levels, s, err)
		}
		b = forgeHeader(t, func(add func([]byte) file.Chunk) []byte {
			var rows []btree.Row
			pairs := etf.AppendListHeader(nil, 2)
			for i := range 2 {
				// The end of the keys alone tells them apart.
				key := append(etf.AppendListHeader(nil, 2), nested(levels)...)
				key = etf.AppendNil(etf.AppendInt64(key, int64(i+300)))
				pairs = append(etf.AppendInt64(etf.AppendTupleHeader(pairs, 2), 0), key...)
				rows = append(rows, btree.Row{Key: append(append(etf.AppendTupleHeader(nil, 2), key...), enc(t, `<<"doc">>`)...), Value: enc(t, "1")})
				if i == 0 {
					pairs = append(etf.AppendListHeader(nil, 2), pairs[5:]...)
				}
			}
			red, err := btree.View{}.Reduce(nil, rows)
			if err != nil {
				t.Fatal(err)
			}
			ids := add(leafOf(btree.Row{Key: enc(t, `<<"doc">>`), Value: etf.AppendNil(pairs)}))
			view := rootOf(add(leafOf(rows...)), red)
			states := etf.AppendNil(append(etf.AppendListHeader(nil, 1), view...))
			return appendTuple([][]byte{etf.AppendBinary(nil, make([]byte, 16)), appendTuple([][]byte{
				enc(t, "mrheader"), enc(t, "1"), enc(t, "0"), rootOf(ids, noReduction), states,
			})})
		})
		fine(t, inspectBytes(t, "nested.view", b, Options{}))
	}
}

// TestEveryGeneration: nothing is wrong with any header that CouchDB has written, the
// first one of a database included.
func TestEveryGeneration(t *testing.T) {
	for _, name := range []string{"db_many.couch", "db_small_none.couch", "db_v6_small.couch", "db_empty.couch", "view_none.view"} {
		n := inspect(t, name, Options{}).HeadersCount
		for g := range n {
			r := inspect(t, name, Options{Generation: g})
			if r.DamageCount > 0 || r.Generation != g || r.Bytes.Total != r.FileSize {
				t.Errorf("%s, generation %d of %d: %v", name, g, n, r.Damage)
			}
		}
	}
}

// said is all the damage of a report.
func said(r *Report) string {
	s := ""
	for _, f := range r.Damage {
		s += f.String() + "\n"
	}
	return s
}

// TestReadAgain: a file that leads to the same bytes again and again is not read for
// ever, and nobody is told that it is fine. Without bounds each of these reads more
// than a hundred times the file's size.
func TestReadAgain(t *testing.T) {
	const times = 400
	big := make([]byte, 64<<10)
	revision := func(n int, ptr int64) []byte { // {RevId, Value, []}
		return enc(t, fmt.Sprintf(`{<<"%05d">>, {0, %d, 1, {1, 1}, []}, []}`, n, ptr))
	}
	document := func(add func([]byte) file.Chunk, tree []byte) []byte {
		head := enc(t, "{1, 0, {1, 1}}")
		id := append(append(etf.AppendTupleHeader(nil, 4), head[2:]...), tree...)
		head = enc(t, `{<<"doc">>, 0, {1, 1}}`)
		seq := append(append(etf.AppendTupleHeader(nil, 4), head[2:]...), tree...)
		ids := rootOf(add(leafOf(btree.Row{Key: enc(t, `<<"doc">>`), Value: id})), enc(t, "{1, 0, {size_info, 1, 1}}"))
		seqs := rootOf(add(leafOf(btree.Row{Key: enc(t, "1"), Value: seq})), enc(t, "1"))
		return database(1, ids, seqs, nil, nil, nil, nil)
	}
	for name, c := range map[string]struct {
		want  string
		write func(add func([]byte) file.Chunk) []byte
	}{
		"views.view": {"trees have more nodes than the file has bytes", func(add func([]byte) file.Chunk) []byte {
			leaf := leafOf(btree.Row{Key: enc(t, `{1, <<"doc">>}`), Value: etf.AppendBinary(nil, big)})
			view := rootOf(add(leaf), enc(t, "{1, [], 65543}"))
			states := etf.AppendNil(append(etf.AppendListHeader(nil, times), bytes.Repeat(view, times)...))
			return appendTuple([][]byte{etf.AppendBinary(nil, make([]byte, 16)), appendTuple([][]byte{
				enc(t, "mrheader"), enc(t, "1"), enc(t, "0"), enc(t, "nil"), states,
			})})
		}},
		"attachments.couch": {"attachments have more bytes than the file", func(add func([]byte) file.Chunk) []byte {
			piece := enc(t, fmt.Sprintf("{%d, %d}", add(big).Ptr, len(big)))
			pieces := etf.AppendNil(append(etf.AppendListHeader(nil, times), bytes.Repeat(piece, times)...))
			att := appendTuple([][]byte{enc(t, `<<"att">>`), enc(t, `<<"t/p">>`), pieces, enc(t, "1"), enc(t, "1"), enc(t, "1"), enc(t, `<<>>`), enc(t, "identity")})
			atts := etf.AppendNil(append(etf.AppendListHeader(nil, 1), att...))
			body := add(append(etf.AppendVersion(nil), appendTuple([][]byte{enc(t, `<<131, 106>>`), etf.AppendBinary(nil, append(etf.AppendVersion(nil), atts...))})...))
			tree := etf.AppendListHeader(nil, 1)
			tree = append(etf.AppendInt64(etf.AppendTupleHeader(tree, 2), 1), revision(0, body.Ptr)...)
			return document(add, etf.AppendNil(tree))
		}},
		"bodies.couch": {"bodies have more bytes than the file", func(add func([]byte) file.Chunk) []byte {
			for i := 0; i < len(big); i += 4 {
				binary.BigEndian.PutUint32(big[i:], 30000)
			}
			start := add(big).Ptr + 5 // behind tag and length word
			tree := etf.AppendListHeader(nil, 0)[:0]
			n := 0
			for k := int64(0); n < times; k += 4 {
				p := start + k + (start%file.BlockSize-1+k)/(file.BlockSize-1) // and the tags between
				tree = append(etf.AppendInt64(etf.AppendTupleHeader(tree, 2), 1), revision(n, p)...)
				n++
			}
			return document(add, etf.AppendNil(append(etf.AppendListHeader(nil, n), tree...)))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := forgeHeader(t, c.write)
			if s := said(inspectBytes(t, name, b, Options{})); !strings.Contains(s, c.want) {
				t.Errorf("damage:\n%.2000s\nwant: %s", s, c.want)
			}
			_, fs, err := salvageBytes(t, name, b, SalvageOptions{})
			if err != nil {
				return
			}
			if out, err := fs.Stat("out" + filepath.Ext(name)); err == nil && out.Size() > 70*int64(len(b)) {
				t.Errorf("salvage made %d bytes of %d", out.Size(), len(b))
			}
		})
	}
}

// TestFramesAreGivenUp: of a tree with a large node on each level, one at a time is in
// memory.
func TestFramesAreGivenUp(t *testing.T) {
	const levels = 20
	var root btree.Pointer
	b := forge(t, func(add func([]byte) file.Chunk) btree.Pointer {
		large := leafOf(btree.Row{Key: enc(t, "1"), Value: etf.AppendBinary(nil, make([]byte, 4<<20))})
		leaf := add(mustCompression(t, "deflate_9").Append(nil, large))
		child := add(forgedLeaf)
		for range levels {
			child = add(forgedNode("kp_node", 1, pointerTo(leaf.Ptr, btree.NoSize).Append(nil), pointerTo(child.Ptr, btree.NoSize).Append(nil)))
		}
		add(make([]byte, levels*int(leaf.Size)))
		root = pointerTo(child.Ptr, btree.NoSize)
		return root
	})
	in, err := open(inMemory(t, "large.cf", b), "large.cf", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	w := &walker{in: in, tree: &TreeInfo{}, orders: []*order{{compare: btree.TermOrder}}}
	if err := w.run(root); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	rows, held, frames := w.tree.Rows, w.held, len(w.frames)
	w = nil
	runtime.GC()
	runtime.ReadMemStats(&after)
	kept := int64(before.HeapAlloc) - int64(after.HeapAlloc)
	if rows != levels+1 || held != 0 || frames != levels+1 || kept > levels<<20 {
		t.Errorf("%d rows, %d bytes held, %d kept in %d frames", rows, held, kept, frames)
	}
}

// TestSalvageSequences: where two things have one sequence, both are saved.
func TestSalvageSequences(t *testing.T) {
	const tree = `[{1, {<<"r">>, [], []}}]`
	row := func(key, value string) btree.Row { return btree.Row{Key: enc(t, key), Value: enc(t, value)} }
	b := forgeHeader(t, func(add func([]byte) file.Chunk) []byte {
		ids := add(leafOf(row(`<<"a">>`, "{1, 1, {0, 0}, "+tree+"}"), row(`<<"b">>`, "{1, 1, {0, 0}, "+tree+"}")))
		seqs := add(leafOf(row("1", `{<<"a">>, 1, {0, 0}, `+tree+"}"), row("2", `{<<"b">>, 1, {0, 0}, `+tree+"}")))
		purges := add(leafOf(row(`<<"u">>`, `{1, <<"x">>, [<<"r">>]}`), row(`<<"v">>`, `{1, <<"y">>, [<<"r">>]}`)))
		bySeq := add(leafOf(row("1", `{<<"u">>, <<"x">>, [<<"r">>]}`)))
		return database(2, rootOf(ids, enc(t, "{0, 2, {size_info, 0, 0}}")), rootOf(seqs, enc(t, "2")), nil,
			rootOf(purges, enc(t, "2")), rootOf(bySeq, enc(t, "1")), nil)
	})
	s, fs, err := salvageBytes(t, "twice.couch", b, SalvageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := mustFile(t, fs, s.Out)
	if s.Documents != 2 || s.LostCount == 0 || *r.UpdateSeq != 3 || r.DelDocCount != 2 || r.PurgedDocCount != 1 {
		t.Errorf("%+v\n%+v, update_seq %d", s, r.Documents, *r.UpdateSeq)
	}
}

// TestSalvageImpossibleSequence: a row that cannot be right is taken from the other tree.
func TestSalvageImpossibleSequence(t *testing.T) {
	const tree = `[{1, {<<"r">>, {1, %d, %d, {1, 1}, []}, []}}]`
	b := forgeHeader(t, func(add func([]byte) file.Chunk) []byte {
		body := add(append(etf.AppendVersion(nil), enc(t, `{<<131, 106>>, <<131, 106>>}`)...)).Ptr
		ids := add(leafOf(btree.Row{Key: enc(t, `<<"a">>`), Value: enc(t, "{1, 1, {1, 1}, "+fmt.Sprintf(tree, body, 77)+"}")}))
		seqs := add(leafOf(btree.Row{Key: enc(t, "1"), Value: enc(t, `{<<"a">>, 1, {1, 1}, `+fmt.Sprintf(tree, body, 1)+"}")}))
		return database(1, rootOf(ids, enc(t, "{0, 1, {size_info, 1, 1}}")), rootOf(seqs, enc(t, "1")), nil, nil, nil, nil)
	})
	s, _, err := salvageBytes(t, "impossible.couch", b, SalvageOptions{})
	if err != nil || s.Documents != 1 || s.FromSeqTree != 1 || s.Bodies != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestSalvageViewKeys damages every fifth of the documents' names in a view and its id
// tree, one at a time. What is written agrees with itself, and where rows are wrong CouchDB will not
// take it for the index.
func TestSalvageViewKeys(t *testing.T) {
	b := readVector(t, "view_none.view")
	all, n := 0, 0
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte("k0000"))
		if i < 0 {
			break
		}
		at += i + 1
		if all++; all%5 != 0 {
			continue
		}
		mutant := bytes.Clone(b)
		mutant[at+2] ^= 0x80
		s, fs, err := salvageBytes(t, "view.view", mutant, SalvageOptions{})
		if err != nil {
			if strings.Contains(err.Error(), "what was written") {
				t.Errorf("at %d: %v", at, err)
			}
			continue
		}
		zero := mustFile(t, fs, s.Out).ViewSignature == strings.Repeat("0", 32)
		if zero != (s.LostCount > 0) {
			t.Errorf("at %d: lost %v, signature zero: %v", at, s.Lost, zero)
		}
		n++
	}
	if n < 30 {
		t.Errorf("%d mutants were saved", n)
	}
}
