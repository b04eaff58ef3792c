package check

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// WriteText writes the report for people to w.
func (r *Report) WriteText(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %s\n", r.FileName, r.verdict())
	r.writeHead(&b)
	r.writeTrees(&b)
	r.writeBytes(&b)
	r.writeHeaders(&b)
	for _, c := range r.Conflicted {
		line(&b, "conflict", "%s %s", quote([]byte(c.ID)), strings.Join(c.Revs, " "))
	}
	writeFindings(&b, "damage", r.Damage, r.DamageCount)
	writeFindings(&b, "note", r.Notes, r.NotesCount)
	_, err := w.Write(b.Bytes())
	return err
}

// Damaged says whether anything is wrong with the file.
func (r *Report) Damaged() bool { return r.DamageCount > 0 }

func (r *Report) verdict() string {
	if r.Damaged() {
		return fmt.Sprintf("DAMAGED (%d)", r.DamageCount)
	}
	return "fine"
}

var typeNames = map[string]string{
	TypeDatabase: "database", TypeView: "view", TypeStore: "store", TypeTree: "file of trees", TypeCompact: "file of a compaction", TypeError: "file without a header",
}

// line writes a label and what belongs to it.
func line(b *bytes.Buffer, label, format string, args ...any) {
	fmt.Fprintf(b, "  %-14s %s\n", label, fmt.Sprintf(format, args...))
}

func number(b *strings.Builder, name string, n *int64) {
	if n != nil {
		fmt.Fprintf(b, ", %s %d", name, *n)
	}
}

func (r *Report) writeHead(b *bytes.Buffer) {
	var s strings.Builder
	fmt.Fprintf(&s, "%s of %d bytes", typeNames[r.FileType], r.FileSize)
	number(&s, "disk version", r.DiskVersion)
	number(&s, "update_seq", r.UpdateSeq)
	number(&s, "purge_seq", r.PurgeSeq)
	number(&s, "compacted_seq", r.CompactedSeq)
	line(b, "file", "%s", s.String())
	if h := r.Header; h != nil {
		line(b, "header", "generation %d of %d, at %d, %d bytes, %s", r.Generation, r.HeadersCount, h.Offset, h.Size, h.Checksum)
	}
	if r.ViewSignature != "" {
		line(b, "signature", "%s", r.ViewSignature)
	}
	if r.HeaderTerm != "" {
		line(b, "term", "%s", r.HeaderTerm)
	}
	if d := r.Documents; d != nil {
		line(b, "documents", "%d, deleted %d, purged %d; revisions %d, leaves %d; attachments %d",
			d.DocCount, d.DelDocCount, d.PurgedDocCount, d.Revisions, d.LeafRevisions, d.Attachments)
		line(b, "conflicts", "%d in %d documents, deleted ones %d", d.Conflicts, d.ConflictedDocs, d.DeletedConflicts)
	}
	if r.Header != nil {
		line(b, "sizes", "active %d, external %d, fragmentation %s", r.ActiveSize, r.ExternalSize, r.Fragmentation)
	}
	if len(r.SecurityObject) > 0 {
		line(b, "security", "%s", clip(string(r.SecurityObject), 500))
	}
}

func clip(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

func (r *Report) writeTrees(b *bytes.Buffer) {
	for _, t := range r.TreeInfo {
		line(b, t.Name, "depth %d, %d rows, %d bytes%s", t.Depth, t.Rows, t.Size, t.more())
		writeNodes(b, "kv", &t.KV)
		writeNodes(b, "kp", &t.KP)
	}
}

func (t *TreeInfo) more() string {
	var s string
	if t.Collation != "" && t.Rows > 0 {
		s += ", " + t.Collation + " collation"
	}
	if t.Separators > 0 {
		s += fmt.Sprintf(", %d short separators", t.Separators)
	}
	if t.Broken > 0 {
		s += fmt.Sprintf(", %d SUBTREES MISSING", t.Broken)
	}
	return s
}

// bars draw eighths.
var bars = []rune("▁▂▃▄▅▆▇█")

// writeNodes writes a line with a histogram of how full nodes are.
func writeNodes(b *bytes.Buffer, name string, n *Nodes) {
	if n.Count == 0 {
		return
	}
	most := int64(1)
	for _, c := range n.Fill {
		most = max(most, c)
	}
	var h strings.Builder
	for _, c := range n.Fill {
		if c == 0 {
			h.WriteByte(' ')
		} else {
			h.WriteRune(bars[(c*int64(len(bars))-1)/most])
		}
	}
	line(b, "", "%s %6d nodes of %d to %d entries   fill 0%% |%s| 150%%+", name, n.Count, n.Min, n.Max, h.String())
}

var byteLines = [uses]string{
	"header", "kp nodes", "kv nodes", "bodies of leaf revisions", "bodies of older revisions", "attachments", "security, props and the like", "log",
	"older headers", "kp nodes", "kv nodes", "bodies", "attachments", "terms", "log that is in the tree", "padding", "unknown chunks", "unreadable", "newer than the header",
}

func (r *Report) writeBytes(b *bytes.Buffer) {
	if r.Bytes == nil || r.FileSize == 0 {
		return
	}
	percent := func(n int64) float64 { return 100 * float64(n) / float64(r.FileSize) }
	for u := range uses {
		label := ""
		switch u {
		case useHeader:
			label = "reachable"
		case orphanHeader:
			line(b, "", "%-30s %12d %6.2f%%", "", r.Bytes.Live(), percent(r.Bytes.Live()))
			label = "garbage"
		}
		n := *r.Bytes.of(u)
		if n == 0 && label == "" {
			continue
		}
		line(b, label, "%-30s %12d %6.2f%%", byteLines[u], n, percent(n))
	}
	line(b, "all", "%-30s %12d %6.2f%%", "", r.Bytes.Total, percent(r.Bytes.Total))
}

func (r *Report) writeHeaders(b *bytes.Buffer) {
	for i, h := range r.Headers {
		label := ""
		if i == 0 {
			label = "headers"
		}
		seq := ""
		if h.UpdateSeq != nil {
			seq = fmt.Sprintf(", update_seq %d", *h.UpdateSeq)
		}
		if h.Error != "" {
			seq += ", " + h.Error
		}
		line(b, label, "%d at %d%s", h.Generation, h.Offset, seq)
	}
	if more := r.HeadersCount - len(r.Headers); more > 0 && len(r.Headers) > 0 {
		line(b, "", "and %d older ones", more)
	}
}

func writeFindings(b *bytes.Buffer, label string, list []Finding, count int) {
	for _, f := range list {
		line(b, label, "%s", f)
	}
	if more := count - len(list); more > 0 {
		line(b, label, "and %d more", more)
	}
}
